"""Completions of an engine: from a checked request to its answer, whole, streamed or abandoned."""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from routing.testbed import api_messages, api_responses
from routing.testbed import api_requests as requests
from routing.testbed.api_answers import Answer, AnswerStyle
from routing.testbed.api_choices import Choices
from routing.testbed.api_messages import MessagesAnswer
from routing.testbed.api_responses import ResponsesAnswer
from routing.testbed.bootstrap import Rooms, Writer
from routing.testbed.driver import EngineDriver
from routing.testbed.errors import ApiError
from routing.testbed.http import STREAM_HEAD, Exchange
from routing.testbed.sequence import Sequence
from routing.testbed.settings import EngineSettings

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Api:
    """How one API is read and answered."""

    prefix: str
    """Of the ids of its answers."""
    is_chat: bool
    as_chat: Callable[[Body], dict[str, Any]] | None = None
    """Its request as one of chat; `None` is read as it is."""


CHAT = Api("chatcmpl", is_chat=True)
COMPLETION = Api("cmpl", is_chat=False)
RESPONSES = Api("resp", is_chat=True, as_chat=api_responses.as_chat)
MESSAGES = Api("chatcmpl", is_chat=True, as_chat=api_messages.as_chat)


@dataclass(slots=True)
class _Run:
    """One request under way."""

    exchange: Exchange
    prompt: requests.Prompt
    name: str
    sequences: list[Sequence]
    writer: Writer
    is_open: bool = False
    """A stream has begun."""
    ended: int = 0
    """Sequences whose end was told; several may end in one step of the engine."""

    @property
    def has_ended(self) -> bool:
        return self.ended == len(self.sequences)


class Completions:
    """The routes of one engine that answer with tokens."""

    def __init__(
        self,
        settings: EngineSettings,
        driver: EngineDriver,
        *,
        style: AnswerStyle,
        context_limit: int,
        side_channel_port: int,
    ) -> None:
        self._settings = settings
        self._driver = driver
        self._style = style
        self._context_limit = context_limit
        self._side_channel_port = side_channel_port
        self._rooms = Rooms(driver, role=settings.role, hold_seconds=settings.kv_hold_seconds)

    def answer(self, exchange: Exchange, api: Api) -> None:
        """Read, check and queue a request. Raises ApiError."""
        given = requests.parse_json(exchange.body)
        # A queue of long prompts is kept as tokens, not as text too.
        exchange.body.clear()
        model, adapter = requests.model_of(given, self._settings)
        body = api.as_chat(given) if api.as_chat else given
        prompt = requests.parse_prompt(
            body, chat=api.is_chat, context_limit=self._context_limit, adapter=adapter
        )
        prompt = self._own_part(prompt)
        own = exchange.headers.get(b"x-request-id", b"").decode("latin-1")
        name = f"{api.prefix}-{own or secrets.token_hex(8)}"
        run = self._run(exchange, api, prompt, name=name, body={**given, "model": model})
        exchange.on_abort = lambda: self._abort(run)
        for sequence in run.sequences:
            self._driver.submit(sequence)

    def _own_part(self, prompt: requests.Prompt) -> requests.Prompt:
        """What this engine does of a request: for another engine one prompt is computed once."""
        if self._is_sglang:
            return self._rooms.own_part(prompt)
        if prompt.transfer and prompt.transfer.get("do_remote_decode"):
            return replace(prompt, choices=1)
        return prompt

    @property
    def _is_sglang(self) -> bool:
        return self._settings.flavor == "sglang"

    def _run(
        self, exchange: Exchange, api: Api, prompt: requests.Prompt, *, name: str, body: Body
    ) -> _Run:
        size, now = self._settings.block_size, self._driver.now
        sequences = [
            prompt.sequence(name, block_size=size, now=now, choice=choice)
            for choice in range(prompt.choices)
        ]
        writer = self._writer(api, prompt, sequences, body)
        run = _Run(exchange, prompt, name, sequences, writer)
        step = self._stream if prompt.stream else self._whole
        for sequence in sequences:
            sequence.listener = lambda one: step(run, one)
        first = sequences[0]
        if self._is_sglang:
            self._rooms.enter(prompt, first)
            waits = self._rooms.prefill_listener(exchange, prompt, writer)
            first.listener = waits or first.listener
        else:
            self._apply_transfer(first, prompt.transfer)
        return run

    def _writer(
        self, api: Api, prompt: requests.Prompt, sequences: list[Sequence], body: Body
    ) -> Writer:
        created, style = _unix_time(), replace(self._style, model=body["model"])
        if api is RESPONSES:
            return ResponsesAnswer(prompt, sequences[0], style, created=created, body=body)
        if api is MESSAGES:
            return MessagesAnswer(prompt, sequences[0], style)
        if prompt.is_plain:
            return Answer(prompt, sequences[0], style, created=created)
        return Choices(prompt, sequences, style, created=created)

    def _abort(self, run: _Run) -> None:
        for sequence in run.sequences:
            if sequence.finish_reason is None:
                self._driver.abort(sequence)
        self._rooms.leave(run.prompt)

    def _apply_transfer(self, sequence: Sequence, transfer: Mapping[str, Any] | None) -> None:
        """Be the end of a P/D pair that the request asks for, if this engine's role allows it."""
        if transfer is None:
            return
        if transfer.get("do_remote_decode") and self._settings.role != "decode":
            sequence.hold = True
        elif transfer.get("do_remote_prefill") and self._settings.role != "prefill":
            sequence.remote = requests.remote_kv(transfer, prompt_tokens=sequence.prompt_tokens)

    def _stream(self, run: _Run, sequence: Sequence) -> None:
        if sequence.finish_reason == "error":
            self._lost(run)
            return
        run.ended += sequence.finish_reason is not None
        data = run.writer.token_chunk(sequence)
        if data:
            run.exchange.write(data if run.is_open else STREAM_HEAD + data)
            run.is_open = True
        if run.has_ended:
            run.exchange.end()

    def _whole(self, run: _Run, sequence: Sequence) -> None:
        if sequence.finish_reason is None:
            return
        if sequence.finish_reason == "error":
            self._lost(run)
            return
        run.ended += 1
        if run.has_ended:
            transfer = self._hold(run) if run.sequences[0].hold else None
            run.exchange.send_json(200, run.writer.document(transfer))

    def _hold(self, run: _Run) -> dict[str, Any]:
        """Keep the prompt's blocks and say where they are."""
        sequence, settings = run.sequences[0], self._settings
        is_batch = run.name.startswith("cmpl-")
        remote_id = f"{run.name}{'-0' if is_batch else ''}-{secrets.token_hex(4)}"
        blocks = self._driver.hold(remote_id, sequence, settings.kv_hold_seconds)
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [blocks],
            "remote_engine_id": settings.engine_id,
            "remote_request_id": remote_id,
            "remote_host": settings.host,
            "remote_port": self._side_channel_port,
            "tp_size": 1,
            "dcp_size": 1,
            "pp_size": 1,
            "remote_num_tokens": sequence.prompt_tokens,
            "remote_blocks_expiry_time": None,
            "transfer_mode": "pull",
            "remote_prefill_cached_tokens": sequence.local_hit,
        }

    def _lost(self, run: _Run) -> None:
        """The KV of the first choice did not come; the others are given up with it."""
        for sequence in run.sequences:
            if sequence.finish_reason is None:
                self._driver.abort(sequence)
        error = ApiError(
            "The KV of the prompt could not be loaded from the prefill engine.",
            status=500,
            kind="InternalServerError",
            param=None,
        )
        if run.is_open:
            run.exchange.cut()
        else:
            run.exchange.send_json(500, error.body())


def _unix_time() -> int:
    return int(time.time())  # noqa: TID251 - `created` in answers is wall-clock time
