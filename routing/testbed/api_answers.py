"""Answers to completion requests, whole and streamed, with the fields of vLLM 0.32."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from routing.testbed import tokens as tk
from routing.testbed.api_requests import Prompt
from routing.testbed.http import LAST_CHUNK, chunk
from routing.testbed.sequence import Sequence


def usage(sequence: Sequence, *, details: bool) -> dict[str, Any]:
    """Token counts of an answer; `cached_tokens` only when the engine reports details."""
    counts: dict[str, Any] = {
        "prompt_tokens": sequence.prompt_tokens,
        "total_tokens": sequence.prompt_tokens + sequence.output,
        "completion_tokens": sequence.output,
    }
    if details:
        counts["prompt_tokens_details"] = {"cached_tokens": sequence.cached}
    return counts


@dataclass(frozen=True, slots=True)
class AnswerStyle:
    """What all answers of an engine have in common."""

    model: str
    fingerprint: str
    details: bool
    """Report `cached_tokens` (`--enable-prompt-tokens-details`)."""
    stream_interval: int
    """Tokens per event of a stream, after the first."""


class Answer:
    """Writes the answer of one sequence."""

    def __init__(
        self,
        prompt: Prompt,
        sequence: Sequence,
        style: AnswerStyle,
        *,
        created: int,
    ) -> None:
        self._index = sequence.choice
        self._prompt = prompt
        self._sequence = sequence
        self._model = style.model
        self._created = created
        self._fingerprint = style.fingerprint
        self._details = style.details
        self._head, self._tail = self._frame()
        # Every piece has four bytes, so one length serves all ordinary chunks.
        size = len(self._head) + tk.PIECE_BYTES + len(self._tail)
        self._fast_head = b"%x\r\n%b" % (size, self._head)
        self._fast_tail = self._tail + b"\r\n"
        plain = not (prompt.continuous_usage or prompt.return_token_ids)
        self._fast = plain and style.stream_interval == 1
        self._interval = style.stream_interval
        self._unsent: list[int] = []

    def document(self, transfer: Mapping[str, Any] | None) -> dict[str, Any]:
        """The whole answer of a request that does not stream."""
        sequence, prompt = self._sequence, self._prompt
        counts = usage(sequence, details=self._details)
        counts.setdefault("prompt_tokens_details", None)
        counts["completion_tokens_details"] = None
        document: dict[str, Any] = {
            "id": sequence.id,
            "object": "chat.completion" if prompt.chat else "text_completion",
            "created": self._created,
            "model": self._model,
            "choices": [self.choice()],
            "service_tier": None,
            "system_fingerprint": self._fingerprint,
            "usage": counts,
        }
        if prompt.chat:
            ids = self._prompt_ids()
            document |= {"prompt_logprobs": None, "prompt_token_ids": ids, "prompt_text": None}
        document |= {"kv_transfer_params": transfer, "ec_transfer_params": None, "metrics": None}
        return document

    def token_chunk(self, _: Sequence) -> bytes:
        """The stream's bytes for the token that the sequence emitted last; empty when kept back.

        With an interval of n the first token is sent at once, then n together, as vLLM does.
        """
        sequence = self._sequence
        if self._fast and sequence.finish_reason is None and sequence.output > 1:
            return self._fast_head + tk.PIECES[sequence.piece] + self._fast_tail
        data = self.events()
        return data if sequence.finish_reason is None else data + self.closing()

    def events(self) -> bytes:
        """As `token_chunk`, without the end of the stream."""
        sequence = self._sequence
        self._unsent.append(sequence.piece)
        due = sequence.output == 1 or len(self._unsent) >= self._interval
        if sequence.finish_reason is None and not due:
            return b""
        opening = b""
        if sequence.output == 1 and self._prompt.chat:
            opening = self._role_chunk()
        return opening + chunk(self._token_event())

    def _prompt_ids(self) -> list[int] | None:
        if not self._prompt.return_token_ids:
            return None
        return self._sequence.tokens[: self._sequence.prompt_tokens].tolist()

    def closing(self, counts: dict[str, Any] | None = None) -> bytes:
        """The end of the stream; `counts` are the usage, where it is that of several answers."""
        end = chunk(b"data: [DONE]\n\n") + LAST_CHUNK
        if not self._prompt.include_usage:
            return end
        event = self._event([]) | {
            "usage": counts or usage(self._sequence, details=self._details),
            "system_fingerprint": self._fingerprint,
        }
        return chunk(sse(event)) + end

    def _role_chunk(self) -> bytes:
        choice = {
            "index": self._index,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        ids = self._prompt_ids()
        event = self._event([choice]) | {"prompt_token_ids": ids, "prompt_text": None}
        return chunk(sse(self._with_usage(event, tokens=0)))

    def _token_event(self) -> bytes:
        sequence = self._sequence
        pieces, self._unsent = self._unsent, []
        text = b"".join(tk.PIECES[piece] for piece in pieces).decode()
        choice = self._stream_choice(text, sequence.finish_reason)
        if self._prompt.return_token_ids:
            choice["token_ids"] = [tk.PIECE_IDS[piece] for piece in pieces]
            if sequence.output == 1 and not self._prompt.chat:
                choice["prompt_token_ids"] = self._prompt_ids()
        return sse(self._with_usage(self._event([choice]), tokens=sequence.output))

    def _with_usage(self, event: dict[str, Any], *, tokens: int) -> dict[str, Any]:
        if self._prompt.continuous_usage:
            counts = usage(self._sequence, details=self._details)
            counts["completion_tokens"] = tokens
            counts["total_tokens"] = self._sequence.prompt_tokens + tokens
            event["usage"] = counts
        return event

    def _event(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._sequence.id,
            "object": "chat.completion.chunk" if self._prompt.chat else "text_completion",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }

    def _stream_choice(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": self._index}
        if self._prompt.chat:
            choice |= {"delta": {"content": text}, "logprobs": None, "finish_reason": finish_reason}
            if finish_reason is not None:
                choice["stop_reason"] = None
            return choice | {"token_ids": None}
        return choice | {
            "text": text,
            "logprobs": None,
            "finish_reason": finish_reason,
            "stop_reason": None,
            "prompt_token_ids": None,
            "token_ids": None,
        }

    def _frame(self) -> tuple[bytes, bytes]:
        """What stands before and after the text in an ordinary chunk."""
        event = sse(self._event([self._stream_choice("\0", None)]))
        head, tail = event.split(b"\\u0000")
        return head, tail

    def choice(self) -> dict[str, Any]:
        """The answer as one of `choices`."""
        sequence, prompt = self._sequence, self._prompt
        answer = sequence.tokens[sequence.prompt_tokens :].tolist()
        ids = answer if prompt.return_token_ids else None
        text = tk.detokenize(answer)
        common = {
            "logprobs": None,
            "finish_reason": sequence.finish_reason,
            "stop_reason": None,
            "token_ids": ids,
        }
        if prompt.chat:
            message = {
                "role": "assistant",
                "content": text,
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "reasoning": None,
            }
            return {"index": self._index, "message": message} | common | {"routed_experts": None}
        prompt_ids = self._prompt_ids()
        more = {"prompt_logprobs": None, "prompt_token_ids": prompt_ids, "routed_experts": None}
        return {"index": self._index, "text": text} | common | more


def sse(event: Mapping[str, Any]) -> bytes:
    """An event without a name."""
    return b"data: " + orjson.dumps(event) + b"\n\n"
