"""The protocol that every engine file fulfils, and the JSON pieces they share."""

from typing import Any, Protocol

import msgspec

from routing.core.signals import EngineSignals

Members = dict[str, msgspec.Raw]


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts of an answer. `None` means that the engine did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of `prompt_tokens` that came from a cache, as this engine saw it."""


class PrefillAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a prefill endpoint returned: the ticket for the decode endpoint, and its own counts."""

    kv_transfer_params: bytes
    """JSON exactly as it came; handed on unchanged."""
    usage: TokenUsage


class AnswerError(Exception):
    """An engine's answer lacks what its protocol promises; the message says what."""


class Engine(Protocol):
    """What a router needs to know about one kind of engine."""

    @property
    def slug(self) -> str:
        """Name used in pool documents."""

    @property
    def metrics_path(self) -> str:
        """Path of the Prometheus page."""

    def signals(self, page: bytes) -> EngineSignals:
        """Read load and counters from a metrics page, summed over data-parallel ranks.

        What is absent is `None`; a page of another program gives `None` everywhere.
        """

    def usage(self, answer: bytes) -> TokenUsage | None:
        """Token counts of a whole JSON answer or of one SSE event's JSON; `None` if it has none."""

    def metered_body(self, body: bytes) -> bytes:
        """The client's streaming body, asking for a last chunk with usage."""

    def prefill_body(self, body: bytes) -> bytes:
        """The request that computes the prompt only, made from the client's body."""

    def prefill_answer(self, answer: bytes) -> PrefillAnswer:
        """Read what the decode leg needs. Raises AnswerError when it is not there."""

    def decode_body(self, body: bytes, kv_transfer_params: bytes) -> bytes:
        """The client's body plus the prefill endpoint's ticket, byte for byte."""


def members_of(body: bytes) -> Members:
    """Split a JSON object into its members; each value keeps its original bytes.

    Of equal names the last one counts, as in the engines. Raises msgspec.DecodeError.
    """
    return msgspec.json.decode(body, type=Members)


def join_members(members: Members) -> bytes:
    """Write members as one JSON object; the values' bytes are copied, not written anew."""
    encode = msgspec.json.encode
    return b"{%b}" % b",".join(
        b"%b:%b" % (encode(name), bytes(value)) for name, value in members.items()
    )


def raw(value: Any) -> msgspec.Raw:
    """A value as JSON bytes, to stand among members."""
    return msgspec.Raw(msgspec.json.encode(value))


def append_member(body: bytes, name: str, value: bytes) -> bytes:
    """Put one more member behind the others of a JSON object, leaving every byte as it is.

    The body must be a JSON object (it was parsed before); the name must not be in it already.
    """
    end = body.rindex(b"}")
    head = body[:end].rstrip()
    comma = b"" if head.endswith(b"{") else b","
    return b'%b%b"%b":%b}' % (head, comma, name.encode(), value)
