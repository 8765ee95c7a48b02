"""Read from an OpenAI-compatible request body what routing needs: bytes in, values out.

Only the fields named here are decoded and checked; everything else is the engine's business and the
body is forwarded as it came.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from routing.core import prompt
from routing.core.document import PromptIdentity
from routing.core.prompt import BlockKeys

MOST_OUTPUT_TOKENS = 2**31 - 1
"""Engines count in 32 bits; a number without bound would not fit into a float either."""


class RequestError(Exception):
    """The client's request is wrong; the fields are those of OpenAI's error object."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "BadRequestError",  # noqa: A002 - the wire name
        param: str | None = None,
        code: int | str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = status if code is None else code


class ParsedBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision needs to know of a body. It holds no prompt text."""

    model: str
    stream: bool
    include_usage: bool
    """The client itself asked for `stream_options.include_usage`."""
    max_tokens: int | None
    n: int
    prompt_bytes: int
    prompt_tokens: int
    """Exact for token-id prompts, otherwise estimated with `bytes_per_token`."""
    block_keys: BlockKeys
    chunk_tokens: float
    """Estimated tokens behind one block key."""
    has_exact_tokens: bool
    user: str | None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Common(msgspec.Struct):
    model: str
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: int | None = None
    n: int | None = None
    user: str | None = None
    cache_salt: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | list[msgspec.Raw] | None = None
    tool_calls: msgspec.Raw = msgspec.Raw(b"")


class _Chat(_Common, kw_only=True):
    messages: list[_Message]
    max_completion_tokens: int | None = None
    tools: msgspec.Raw = msgspec.Raw(b"")


class _Completion(_Common, kw_only=True):
    prompt: str | list[Any]


class _Embedding(_Common, kw_only=True):
    input: str | list[Any]


class _Responses(_Common, kw_only=True):
    input: str | list[msgspec.Raw]
    instructions: str | None = None
    max_output_tokens: int | None = None
    tools: msgspec.Raw = msgspec.Raw(b"")


class _Messages(_Common, kw_only=True):
    messages: list[_Message]
    system: str | list[msgspec.Raw] | None = None
    tools: msgspec.Raw = msgspec.Raw(b"")


def parse_request(
    path: str,
    body: bytes,
    *,
    identity: PromptIdentity,
    bytes_per_token: float | None = None,
    salt: str = "",
) -> ParsedBody:
    """Decode a body once and compute its block keys.

    `bytes_per_token` is the learned figure of the model; `None` uses the document's first guess.
    `salt` separates tenants whose engines separate them too. Raises RequestError.
    """
    known = _READERS.get(path.partition("?")[0])
    if known is None:
        raise RequestError(
            f"The path {path} is not served here; known are {', '.join(sorted(_READERS))}.",
            status=404,
            type="NotFoundError",
        )
    decoder, pieces = known
    fields = _decode(decoder, body)
    _check(fields)
    text, token_count = _canonical(pieces(fields))
    ratio = bytes_per_token or identity.bytes_per_token
    if token_count is not None:
        # Four little-endian bytes per id, see _canonical.
        ratio = 4.0
    return ParsedBody(
        model=fields.model,
        stream=bool(fields.stream),
        include_usage=bool(fields.stream_options and fields.stream_options.include_usage),
        max_tokens=_max_tokens(fields),
        n=1 if fields.n is None else fields.n,
        prompt_bytes=len(text),
        prompt_tokens=max(1, round(len(text) / ratio)) if token_count is None else token_count,
        block_keys=prompt.block_keys(
            text,
            root=prompt.root_key(fields.model, fields.cache_salt, salt),
            chunk_bytes=identity.chunk_bytes,
        ),
        chunk_tokens=identity.chunk_bytes / ratio,
        has_exact_tokens=token_count is not None,
        user=fields.user,
    )


def _decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        # Members that are not read here must be text, too: they are copied to engines.
        body.decode()
        return decoder.decode(body)
    except RecursionError as error:
        raise RequestError("The body is nested too deeply to be read.") from error
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        param = path.rstrip("`").lstrip(".") or None
        raise RequestError(f"{message}.", param=param or _missing(message)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"The body is not JSON: {error}.") from error


def _missing(message: str) -> str | None:
    before, _, name = message.partition("missing required field `")
    return name.rstrip("`") if name and before else None


def _check(fields: _Common) -> None:
    maximum = _max_tokens(fields)
    if maximum is not None and not 1 <= maximum <= MOST_OUTPUT_TOKENS:
        raise RequestError(
            f"max_tokens is out of range; allowed are 1 to {MOST_OUTPUT_TOKENS}.",
            param="max_tokens",
        )
    if fields.n is not None and not 1 <= fields.n <= 128:
        raise RequestError(f"n is {fields.n}; allowed are 1 to 128.", param="n")


def _max_tokens(fields: Any) -> int | None:
    for name in ("max_completion_tokens", "max_output_tokens"):
        value: int | None = getattr(fields, name, None)
        if value is not None:
            return value
    shared: int | None = fields.max_tokens
    return shared


def _canonical(pieces: Iterator[str | bytes | list[int]]) -> tuple[bytes, int | None]:
    """The prompt as bytes, and its exact length in tokens if it came as token ids only."""
    parts: list[str | bytes] = []
    tokens, only_ids = 0, True
    for piece in pieces:
        if isinstance(piece, list):
            tokens += len(piece)
            parts.append(b"".join(_id_bytes(token) for token in piece))
        else:
            only_ids = False
            parts.append(piece)
    return prompt.canonical(parts), tokens if only_ids and tokens else None


def _id_bytes(token: int) -> bytes:
    if isinstance(token, bool) or not 0 <= token < 2**32:
        raise RequestError(f"{token!r} is no token id; allowed are 0 to 2^32 - 1.", param="prompt")
    return token.to_bytes(4, "little")


def _chat_pieces(fields: _Chat) -> Iterator[str | bytes]:
    # Templates render tool definitions before the conversation.
    if fields.tools:
        yield bytes(fields.tools)
    yield from _message_pieces(fields.messages)


def _message_pieces(messages: list[_Message]) -> Iterator[str | bytes]:
    for message in messages:
        yield message.role
        yield from _content_pieces(message.content)
        if message.tool_calls:
            yield bytes(message.tool_calls)


def _content_pieces(content: str | list[msgspec.Raw] | None) -> Iterator[str | bytes]:
    if isinstance(content, str):
        yield content
    elif content is not None:
        for part in content:
            yield bytes(part)


def _completion_pieces(fields: _Completion) -> Iterator[str | bytes | list[int]]:
    yield from _inputs(fields.prompt, param="prompt")


def _embedding_pieces(fields: _Embedding) -> Iterator[str | bytes | list[int]]:
    yield from _inputs(fields.input, param="input")


def _inputs(value: str | list[Any], *, param: str) -> Iterator[str | bytes | list[int]]:
    if isinstance(value, str):
        yield value
        return
    if not value:
        raise RequestError(f"{param} is an empty list; it needs at least one element.", param=param)
    if _is_id_list(value):
        yield value
        return
    for item in value:
        if not isinstance(item, str) and not _is_id_list(item):
            raise RequestError(
                f"{param} may be a text, a list of texts, a list of token ids or a list of such "
                f"lists; an element has the type {type(item).__name__}.",
                param=param,
            )
        yield item


def _is_id_list(item: Any) -> bool:
    return isinstance(item, list) and all(isinstance(token, int) for token in item)


def _responses_pieces(fields: _Responses) -> Iterator[str | bytes]:
    if fields.tools:
        yield bytes(fields.tools)
    if fields.instructions:
        yield fields.instructions
    yield from _content_pieces(fields.input)


def _messages_pieces(fields: _Messages) -> Iterator[str | bytes]:
    if fields.tools:
        yield bytes(fields.tools)
    yield from _content_pieces(fields.system)
    yield from _message_pieces(fields.messages)


_Reader = tuple[msgspec.json.Decoder[Any], Callable[[Any], Iterator[str | bytes | list[int]]]]
_READERS: dict[str, _Reader] = {
    "/v1/chat/completions": (msgspec.json.Decoder(_Chat), _chat_pieces),
    "/v1/completions": (msgspec.json.Decoder(_Completion), _completion_pieces),
    "/v1/embeddings": (msgspec.json.Decoder(_Embedding), _embedding_pieces),
    "/v1/responses": (msgspec.json.Decoder(_Responses), _responses_pieces),
    "/v1/messages": (msgspec.json.Decoder(_Messages), _messages_pieces),
}
