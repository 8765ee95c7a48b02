"""Read from a request body what routing needs: bytes in, values out.

`/v1/chat/completions`, `/v1/completions`, `/v1/responses`, `/v1/embeddings` and Anthropic's
`/v1/messages`. Wire forms and prompts of each are in `routing.core.bodies`; the body itself is
forwarded as it came.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from routing.core import prompt
from routing.core.bodies import pieces, wire
from routing.core.bodies.pieces import Pieces
from routing.core.bodies.wire import MOST_OUTPUT_TOKENS, Common, RequestError, Turns
from routing.core.document import PromptIdentity
from routing.core.prompt import BlockKeys

__all__ = [
    "MOST_OUTPUT_TOKENS",
    "PATHS",
    "ExactPrompt",
    "ExactReader",
    "ParsedBody",
    "RequestError",
    "engine_salt",
    "parse_request",
    "read_fields",
]


class ParsedBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision needs to know of a body. It holds no prompt text."""

    model: str
    stream: bool
    include_usage: bool
    """A stream tells its usage anyway: the client asked for it, or the API always does."""
    max_tokens: int | None
    n: int
    prompt_bytes: int
    prompt_tokens: int
    """Exact for token-id prompts, otherwise estimated with `bytes_per_token`."""
    block_keys: BlockKeys
    chunk_tokens: float
    """Estimated tokens behind one block key."""
    has_exact_tokens: bool
    """The block keys are those of the engines' KV events; `prompt_tokens` is counted, too, unless
    `degraded` says that a part of the prompt is not known."""
    user: str | None
    is_multimodal: bool = False
    uses_tools: bool = False
    wants_logprobs: bool = False
    has_output: bool = True
    """False for embeddings: the prompt is computed and nothing is decoded."""
    can_split: bool = True
    """Whether prefill and decode may run on two endpoints: not every API has such legs, and what an
    engine hands over is one prompt for one answer."""
    cache_salt: str | None = None
    """What separates this prompt's KV in the engine: the tenant's salt and the client's own."""
    degraded: str | None = None
    """Why the pool's prompt identity does not apply to this body; keys are bytes keys then."""


class ExactPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a prompt in token ids."""

    block_keys: BlockKeys
    """Of its beginning that is known without a gap."""
    tokens: int
    """Counted in all that is known."""
    unknown_bytes: int
    """Size of the text whose ids are not known."""
    degraded: str | None = None
    """Why nothing is known; there are no keys then."""


ExactReader = Callable[[str, bytes, str | None, Turns | None], ExactPrompt]
"""Reads a prompt in a pool that identifies prompts by token ids: path, body, engine salt, and the
messages where they are all that the prompt is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Api:
    """What one path takes."""

    path: str
    decoder: msgspec.json.Decoder[Any]
    pieces: Callable[[Any, Pieces], None]
    has_usage_option: bool = False
    """Streams tell usage only when `stream_options` asks for it."""
    has_output: bool = True
    can_split: bool = False
    """Its prefill and decode legs are defined."""


Read = tuple[_Api, Any]
"""The API of a path and the checked fields of a body."""

_APIS = {
    api.path: api
    for api in (
        _Api(
            path="/v1/chat/completions",
            decoder=msgspec.json.Decoder(wire.Chat),
            pieces=pieces.of_chat,
            has_usage_option=True,
            can_split=True,
        ),
        _Api(
            path="/v1/completions",
            decoder=msgspec.json.Decoder(wire.Completion),
            pieces=pieces.of_completion,
            has_usage_option=True,
            can_split=True,
        ),
        _Api(
            path="/v1/responses",
            decoder=msgspec.json.Decoder(wire.Responses),
            pieces=pieces.of_responses,
            can_split=True,
        ),
        _Api(
            path="/v1/embeddings",
            decoder=msgspec.json.Decoder(wire.Embedding),
            pieces=pieces.of_embedding,
            has_output=False,
        ),
        _Api(
            path="/v1/messages",
            decoder=msgspec.json.Decoder(wire.Messages),
            pieces=pieces.of_messages,
        ),
    )
}
_RATIO_DOUBT = 4
"""How many times more bytes a token may have in one prompt than on average."""
PATHS = tuple(_APIS)
"""The inference APIs."""


def parse_request(  # noqa: PLR0913 - what a key depends on, each with a default
    path: str,
    body: bytes,
    *,
    identity: PromptIdentity,
    bytes_per_token: float | None = None,
    salt: str = "",
    adapter: str | None = None,
    exact: ExactReader | None = None,
    read: Read | None = None,
    most_tokens: int | None = None,
) -> ParsedBody:
    """Decode a body once and compute its block keys.

    `bytes_per_token` is the learned figure of the model; `None` uses the document's first guess.
    `salt` separates tenants whose engines separate them too, `adapter` is the model's name when it
    is one. `exact` is asked where the pool identifies prompts by their token ids; what it cannot
    read gets bytes keys and is marked degraded. `read` is the answer of `read_fields`, where it was
    asked before. Behind `most_tokens`, the model's context, a prompt gets no keys: no engine holds
    more. Raises RequestError.
    """
    api, fields = read or read_fields(path, body)
    ratio = bytes_per_token or identity.bytes_per_token
    own_salt = engine_salt(salt, fields.cache_salt)
    found = Pieces(bytes_per_token=identity.bytes_per_token)
    told = _told(api, fields, body, own_salt, exact)
    if told is None or told.degraded:
        api.pieces(fields, found)
        known = _from_pieces(
            found, fields, identity, ratio, root=(own_salt, adapter), most_tokens=most_tokens
        )
    else:
        known = _from_ids(told, identity, ratio)
    if told and told.degraded and not known.is_exact:
        known.degraded = told.degraded
    return ParsedBody(
        model=fields.model,
        stream=bool(fields.stream) and api.has_output,
        include_usage=_is_usage_told(api, fields),
        max_tokens=wire.max_tokens(fields),
        n=1 if fields.n is None else fields.n,
        prompt_bytes=known.size,
        prompt_tokens=known.tokens,
        block_keys=known.keys,
        chunk_tokens=known.chunk_tokens,
        has_exact_tokens=known.is_exact,
        user=fields.user,
        is_multimodal=found.is_multimodal,
        uses_tools=bool(getattr(fields, "tools", None)),
        wants_logprobs=bool(fields.logprobs or fields.top_logprobs),
        has_output=api.has_output,
        can_split=api.can_split and pieces.is_one_sequence(fields),
        cache_salt=own_salt,
        degraded=known.degraded or _degraded(fields),
    )


class _Known(msgspec.Struct, kw_only=True):
    keys: BlockKeys
    chunk_tokens: float
    tokens: int
    size: int
    """Bytes of the prompt."""
    is_exact: bool
    degraded: str | None = None


def _from_pieces(
    found: Pieces,
    fields: Common,
    identity: PromptIdentity,
    ratio: float,
    *,
    root: tuple[str | None, str | None],
    most_tokens: int | None,
) -> _Known:
    """Keys of the text; a single prompt that came as token ids has exact ones in every mode."""
    salt, adapter = root
    text = prompt.canonical(found.parts)
    if found.ids and not found.has_text and len(found.parts) == 1:
        most = None if most_tokens is None else most_tokens * prompt.TOKEN_BYTES
        keys = prompt.token_block_keys(
            text[:most], root=prompt.exact_root(adapter, salt), block_tokens=identity.block_tokens
        )
        return _Known(
            keys=keys,
            chunk_tokens=float(identity.block_tokens),
            tokens=found.ids,
            size=len(text),
            is_exact=True,
        )
    of_text = len(text) - prompt.TOKEN_BYTES * found.ids
    most = None if most_tokens is None else round(most_tokens * ratio * _RATIO_DOUBT)
    return _Known(
        keys=prompt.block_keys(
            text[:most], root=prompt.root_key(fields.model, salt), chunk_bytes=identity.chunk_bytes
        ),
        chunk_tokens=identity.chunk_bytes / ratio,
        tokens=max(1, found.ids + round(of_text / ratio)),
        size=len(text),
        is_exact=False,
    )


def _from_ids(told: ExactPrompt, identity: PromptIdentity, ratio: float) -> _Known:
    return _Known(
        keys=told.block_keys,
        chunk_tokens=float(identity.block_tokens),
        tokens=max(1, told.tokens + round(told.unknown_bytes / ratio)),
        size=round(told.tokens * ratio) + told.unknown_bytes,
        is_exact=True,
        degraded="tokens-partly-unknown" if told.unknown_bytes else None,
    )


def _told(
    api: _Api, fields: Common, body: bytes, salt: str | None, exact: ExactReader | None
) -> ExactPrompt | None:
    """What the pool's tokenizer says; `None` where there is none, or the prompt is in ids."""
    if exact is None or isinstance(getattr(fields, "prompt", ""), list):
        return None
    return exact(api.path, body, salt, wire.plain_turns(fields))


def read_fields(path: str, body: bytes) -> Read:
    """The API of a path and the fields of a body, decoded and checked. Raises RequestError."""
    api = _APIS.get(path.partition("?")[0])
    if api is None:
        raise RequestError(
            f"The path {path} is not served here; known are {', '.join(sorted(_APIS))}.",
            status=404,
            type="NotFoundError",
        )
    return api, wire.decode(api.decoder, body)


def engine_salt(tenant_salt: str | None, client_salt: str | None) -> str | None:
    """The `cache_salt` that an engine gets; a client's own cannot leave its tenant's space."""
    if not tenant_salt:
        return client_salt or None
    return f"{len(tenant_salt)}:{tenant_salt}{client_salt or ''}" if client_salt else tenant_salt


def _is_usage_told(api: _Api, fields: Common) -> bool:
    asked = fields.stream_options and fields.stream_options.include_usage
    return bool(asked) or not api.has_usage_option


def _degraded(fields: Common) -> str | None:
    """A prompt that is not in the body, or not all of it, cannot be identified."""
    return "previous-response" if getattr(fields, "previous_response_id", None) else None
