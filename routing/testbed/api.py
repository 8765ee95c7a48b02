"""The HTTP face of a simulated engine: vLLM 0.32's routes over one engine driver."""

import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from routing.testbed import api_requests as requests
from routing.testbed import tokens as tk
from routing.testbed.api_answers import Answer, AnswerStyle
from routing.testbed.driver import EngineDriver
from routing.testbed.http import STREAM_HEAD, Exchange
from routing.testbed.metrics_page import MetricsPage
from routing.testbed.sequence import Sequence
from routing.testbed.settings import VLLM_VERSION, EngineSettings

if TYPE_CHECKING:
    from routing.testbed.publisher import KvPublisher

METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_MISSING = {"detail": "Not Found"}
_WRONG_METHOD = {"detail": "Method Not Allowed"}

Route = Callable[[Exchange], None]


class EngineApi:
    """Routes of one engine."""

    def __init__(
        self,
        settings: EngineSettings,
        driver: EngineDriver,
        *,
        context_limit: int,
        side_channel_port: int,
        publisher: "KvPublisher | None",
    ) -> None:
        self._settings = settings
        self._driver = driver
        self._context_limit = context_limit
        self._side_channel_port = side_channel_port
        self._publisher = publisher
        self._style = AnswerStyle(
            model=settings.model,
            fingerprint=f"vllm-{VLLM_VERSION}-{settings.engine_id.replace('-', '')[:8]}",
            details=settings.prompt_tokens_details,
            stream_interval=settings.stream_interval,
        )
        self._metrics = MetricsPage(
            driver.model, model_name=settings.model, started_at=driver.started_at
        )
        self._routes: dict[str, dict[str, Route]] = {
            "/v1/chat/completions": {"POST": lambda exchange: self._complete(exchange, chat=True)},
            "/v1/completions": {"POST": lambda exchange: self._complete(exchange, chat=False)},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": self._empty},
            "/ping": {"GET": self._empty, "POST": self._empty},
            "/version": {
                "GET": lambda exchange: exchange.send_json(200, {"version": VLLM_VERSION})
            },
            # Real engines do not count here by default: the figure is always 0.
            "/load": {"GET": lambda exchange: exchange.send_json(200, {"server_load": 0})},
            "/metrics": {"GET": self._metrics_page},
            "/tokenize": {"POST": self._tokenize},
            "/detokenize": {"POST": self._detokenize},
            "/kv_event_sources": {"GET": self._event_sources},
            "/reset_prefix_cache": {"POST": self._reset},
        }

    def handle(self, exchange: Exchange) -> None:
        """Answer a request; what it says wrong is answered in vLLM's error form."""
        methods = self._routes.get(exchange.path.partition("?")[0])
        if methods is None:
            exchange.send_json(404, _MISSING)
            return
        route = methods.get(exchange.method)
        if route is None:
            exchange.send_json(405, _WRONG_METHOD)
            return
        try:
            route(exchange)
        except requests.ApiError as error:
            exchange.send_json(error.status, error.body())

    def _complete(self, exchange: Exchange, *, chat: bool) -> None:
        body = requests.parse_json(exchange.body)
        # A queue of long prompts is kept as tokens, not as text too.
        exchange.body.clear()
        requests.check_model(body, self._settings.model)
        prompt = requests.parse_prompt(body, chat=chat, context_limit=self._context_limit)
        given = exchange.headers.get(b"x-request-id", b"").decode("latin-1")
        name = f"{'chatcmpl' if chat else 'cmpl'}-{given or secrets.token_hex(8)}"
        sequence = prompt.sequence(name, block_size=self._settings.block_size, now=self._driver.now)
        self._apply_transfer(sequence, prompt.transfer)
        answer = Answer(prompt, sequence, self._style, created=_unix_time())
        if prompt.stream:
            sequence.listener = lambda s: self._stream(exchange, answer, s)
        else:
            suffix = "" if chat else "-0"
            remote_id = f"{name}{suffix}-{secrets.token_hex(4)}"
            sequence.listener = lambda s: self._answer(exchange, answer, s, remote_id)
        exchange.on_abort = lambda: self._driver.abort(sequence)
        self._driver.submit(sequence)

    def _apply_transfer(self, sequence: Sequence, transfer: Mapping[str, Any] | None) -> None:
        """Be the end of a P/D pair that the request asks for, if this engine's role allows it."""
        if transfer is None:
            return
        if transfer.get("do_remote_decode") and self._settings.role != "decode":
            sequence.hold = True
        elif transfer.get("do_remote_prefill") and self._settings.role != "prefill":
            sequence.remote = requests.remote_kv(transfer, prompt_tokens=sequence.prompt_tokens)

    def _stream(self, exchange: Exchange, answer: Answer, sequence: Sequence) -> None:
        if sequence.finish_reason == "error":
            self._lost(exchange)
            return
        data = answer.token_chunk()
        if data:
            exchange.write(STREAM_HEAD + data if sequence.output == 1 else data)
        if sequence.finish_reason is not None:
            exchange.end()

    def _answer(
        self, exchange: Exchange, answer: Answer, sequence: Sequence, remote_id: str
    ) -> None:
        if sequence.finish_reason is None:
            return
        if sequence.finish_reason == "error":
            self._lost(exchange)
            return
        transfer = self._hold(sequence, remote_id) if sequence.hold else None
        exchange.send_json(200, answer.document(transfer))

    def _hold(self, sequence: Sequence, remote_id: str) -> dict[str, Any]:
        """Keep the prompt's blocks and say where they are."""
        seconds = self._settings.kv_hold_seconds
        blocks = self._driver.hold(remote_id, sequence, seconds)
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [blocks],
            "remote_engine_id": self._settings.engine_id,
            "remote_request_id": remote_id,
            "remote_host": self._settings.host,
            "remote_port": self._side_channel_port,
            "tp_size": 1,
            "dcp_size": 1,
            "pp_size": 1,
            "remote_num_tokens": sequence.prompt_tokens,
            "remote_blocks_expiry_time": None,
            "transfer_mode": "pull",
            "remote_prefill_cached_tokens": sequence.local_hit,
        }

    def _lost(self, exchange: Exchange) -> None:
        error = requests.ApiError(
            "The KV of the prompt could not be loaded from the prefill engine.",
            status=500,
            kind="InternalServerError",
            param=None,
        )
        exchange.send_json(500, error.body())

    def _models(self, exchange: Exchange) -> None:
        created = int(self._driver.started_at)
        permission = {
            "id": f"modelperm-{self._settings.engine_id.replace('-', '')[:16]}",
            "object": "model_permission",
            "created": created,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        model = {
            "id": self._settings.model,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": self._settings.model,
            "parent": None,
            "max_model_len": self._context_limit,
            "permission": [permission],
        }
        exchange.send_json(200, {"object": "list", "data": [model]})

    def _metrics_page(self, exchange: Exchange) -> None:
        exchange.send(200, self._metrics.render(), METRICS_TYPE)

    def _empty(self, exchange: Exchange) -> None:
        exchange.send(200, b"")

    def _tokenize(self, exchange: Exchange) -> None:
        body = requests.parse_json(exchange.body)
        requests.check_model(body, self._settings.model)
        if "messages" in body:
            ids = requests.chat_tokens(body).tolist()
        else:
            ids = tk.tokenize([str(body.get("prompt", "")).encode()]).tolist()
        texts = (
            [tk.detokenize([number]) for number in ids] if body.get("return_token_strs") else None
        )
        exchange.send_json(
            200,
            {
                "count": len(ids),
                "max_model_len": self._context_limit,
                "tokens": ids,
                "token_strs": texts,
            },
        )

    def _detokenize(self, exchange: Exchange) -> None:
        body = requests.parse_json(exchange.body)
        requests.check_model(body, self._settings.model)
        ids = body.get("tokens")
        if not isinstance(ids, list) or not all(_is_token(number) for number in ids):
            raise requests.ApiError("tokens must be a list of token ids.", param="tokens")
        exchange.send_json(200, {"prompt": tk.detokenize(ids)})

    def _event_sources(self, exchange: Exchange) -> None:
        sources = {} if self._publisher is None else {"0": self._publisher.source()}
        exchange.send_json(200, sources)

    def _reset(self, exchange: Exchange) -> None:
        self._driver.reset_cache()
        exchange.send(200, b"")


def _is_token(number: object) -> bool:
    return isinstance(number, int) and 0 <= number < 2 ** (8 * tk.PIECE_BYTES)


def _unix_time() -> int:
    return int(time.time())  # noqa: TID251 - `created` in answers is wall-clock time
