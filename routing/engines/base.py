"""The protocol that every engine file fulfils, and the JSON pieces they share."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from routing.core.event_decoding import EventDecoder
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


class Meeting(msgspec.Struct, frozen=True, kw_only=True):
    """Where the two ends of a pair find each other."""

    host: str
    """Of the prefill endpoint."""
    port: int
    draw_room: Callable[[], int]
    """A number that no other prompt has, below 2^63."""


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

    @property
    def loads_path(self) -> str | None:
        """Path of a JSON load report beside the metrics page, if the engine has one."""

    def waiting_tokens(self, report: bytes) -> int | None:
        """Uncached prompt tokens that wait, from the answer of `loads_path`."""

    def resident_adapters(self, models: bytes) -> frozenset[str] | None:
        """Adapters that an answer of `/v1/models` lists as loaded; `None` when it does not say."""

    def event_decoder(self) -> EventDecoder:
        """Reads one publisher's cache events."""

    def usage(self, answer: bytes) -> TokenUsage | None:
        """Token counts of a whole JSON answer or of one SSE event's JSON; `None` if it has none."""

    def metered_body(self, body: bytes) -> bytes:
        """The client's streaming body, asking for a last chunk with usage."""

    @property
    def in_turn(self) -> "InTurn | None":
        """The legs of a pair, if this engine computes the prompt first and decodes then."""

    @property
    def at_once(self) -> "AtOnce | None":
        """The legs of a pair, if this engine runs both at once."""


class InTurn(Protocol):
    """Legs of a pair one after the other: the prefill answer is the ticket of the decode leg."""

    def prefill_body(self, body: bytes) -> bytes:
        """The request that computes the prompt only, made from the client's body."""

    def prefill_answer(self, answer: bytes) -> PrefillAnswer:
        """Read what the decode leg needs. Raises AnswerError when it is not there."""

    def decode_body(self, body: bytes, kv_transfer_params: bytes) -> bytes:
        """The client's body plus the prefill endpoint's ticket, byte for byte."""


class AtOnce(Protocol):
    """Legs of a pair at the same time: both get one body and meet each other."""

    def meeting_body(self, body: bytes, meeting: Meeting) -> bytes:
        """The client's body plus where the two ends meet."""


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


def batch_of(body: bytes) -> int | None:
    """How many prompts a body holds as a list; `None` for one by itself."""
    prompt = members_of(body).get("prompt")
    if prompt is None or not bytes(prompt).startswith(b"["):
        return None
    items = msgspec.json.decode(prompt, type=list[msgspec.Raw])
    is_list_of_prompts = bool(items) and bytes(items[0]).lstrip()[:1] in (b'"', b"[")
    return len(items) if is_list_of_prompts else None


def replace_member(body: bytes, name: str, value: bytes) -> bytes:
    """Set a member of a JSON object, whether it is there or not; the other values keep their bytes.

    Raises msgspec.DecodeError.
    """
    members = members_of(body)
    if name not in members:
        return append_member(body, name, value)
    return join_members(members | {name: msgspec.Raw(value)})


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class OpenAiUsage(msgspec.Struct):
    """The member `usage` of an answer: chat's names, those of Responses and those of Anthropic."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None
    cache_read_input_tokens: int | None = None
    """Anthropic counts cached and written tokens beside `input_tokens`, not in it."""
    cache_creation_input_tokens: int | None = None


class _Inner(msgspec.Struct):
    usage: OpenAiUsage | None = None


class _Answer(msgspec.Struct):
    usage: OpenAiUsage | None = None
    response: _Inner | None = None
    """Events of a Responses stream hold the whole response."""
    message: _Inner | None = None
    """So does the first event of an Anthropic stream."""


_ANSWER = msgspec.json.Decoder(_Answer)


def usage_of(answer: bytes) -> TokenUsage | None:
    """Token counts of a whole JSON answer or of one SSE event's JSON; `None` if it has none."""
    try:
        found = _ANSWER.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if found.message and found.message.usage:
        # At the start of an Anthropic stream: its output has not been counted yet.
        begun = token_usage(found.message.usage)
        return msgspec.structs.replace(begun, completion_tokens=None)
    usage = found.usage or (found.response.usage if found.response else None)
    return None if usage is None else token_usage(usage)


def token_usage(found: OpenAiUsage) -> TokenUsage:
    """Any of the forms, without nesting. A negative count says nothing."""
    details = found.prompt_tokens_details or found.input_tokens_details
    prompt, cached = found.prompt_tokens, details.cached_tokens if details else None
    if prompt is None and found.input_tokens is not None:
        beside = (found.cache_read_input_tokens or 0) + (found.cache_creation_input_tokens or 0)
        prompt = found.input_tokens + beside
    if cached is None:
        cached = found.cache_read_input_tokens
    output = found.output_tokens if found.completion_tokens is None else found.completion_tokens
    return TokenUsage(
        prompt_tokens=_count(prompt), completion_tokens=_count(output), cached_tokens=_count(cached)
    )


def merged_usage(first: TokenUsage | None, last: TokenUsage | None) -> TokenUsage | None:
    """Two reports of one stream: the later counts hold, the earlier ones fill what they lack."""
    if first is None or last is None:
        return last or first
    fields = TokenUsage.__struct_fields__
    later = {name: getattr(last, name) for name in fields if getattr(last, name) is not None}
    return msgspec.structs.replace(first, **later)


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < 2**53 else None


def metered_body(body: bytes) -> bytes:
    """Ask for usage: one member more, or `include_usage` inside the client's own options."""
    members = members_of(body)
    options = members.get("stream_options")
    if options is None:
        return append_member(body, "stream_options", b'{"include_usage":true}')
    inner = members_of(bytes(options)) if bytes(options) != b"null" else {}
    members["stream_options"] = msgspec.Raw(
        join_members(inner | {"include_usage": raw(value=True)})
    )
    return join_members(members)
