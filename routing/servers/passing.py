"""Paths that the router does not know, passed to any ready endpoint where the pool allows it.

Only what engines offer to users: `/v1/…`, tokens, scores. What manages an engine (caches, sleep,
adapters, profiles) is never passed, whatever the document says, nor what it stores under a name
(responses, files, batches): an engine knows no tenants, so one could read another's.
"""

import json
import re

import msgspec
import numpy as np

from routing.core.document import KeySpec
from routing.core.openai import PATHS, ParsedBody
from routing.core.renaming import with_model
from routing.servers import calls, rewriting
from routing.servers.calls import Call
from routing.servers.documents import Access, LoadedPool
from routing.servers.errors import ApiError
from routing.servers.http_parts import HttpRequest
from routing.servers.state import RouterState

METHODS = ("GET", "POST")
_OPEN = frozenset(
    {"/tokenize", "/detokenize", "/rerank", "/score", "/pooling", "/classify", "/version"}
)
_MANAGING = ("/v1/load_lora_adapter", "/v1/unload_lora_adapter")
_STORED = (
    "/v1/responses/",
    "/v1/files",
    "/v1/uploads",
    "/v1/batches",
    "/v1/messages/batches",
    "/v1/conversations",
    "/v1/vector_stores",
    "/v1/threads",
    "/v1/assistants",
    "/v1/fine_tuning",
)
_PLAIN = re.compile(r"(?:/[A-Za-z0-9_.~:-]+)+")
"""No escapes and no empty steps: what is compared here is what the engine sees."""


class _Passed(msgspec.Struct):
    model: str | None = None
    stream: bool | None = None


_PASSED = msgspec.json.Decoder(_Passed)
JSON = b"application/json"


def read_call(state: RouterState, request: HttpRequest) -> Call:
    """Authenticate and find a pool that passes unknown paths. Raises ApiError."""
    if not is_open(request.path) or not any(map(_passes, state.directory.pools.values())):
        raise _unknown(request.path)
    access = calls.access_of(state, request.headers)
    calls.check_encoding(request)
    fields = _fields(request)
    named = fields.model and rewriting.asked_model(request.headers, fields.model)
    pool, key, model = _pool_of(access, named, request.path)
    if request.method not in METHODS:
        allowed = ", ".join(METHODS)
        raise ApiError(405, f"{request.path} takes {allowed}, not {request.method}.")
    calls.check_size(pool, request.body)
    asked, body = fields.model or model, request.body
    if fields.model is not None:
        model = rewriting.served_model(pool, key, request.headers, model=asked, user=None)
    if model != asked:
        body = _for_model(body, model)
    parsed = _parsed(pool, model, request, fields)
    call = calls.call_of(request, pool, key, path=request.path, parsed=parsed, body=body)
    call = call if model == asked else calls.renamed(call, asked)
    call.method = request.method
    call.target = request.path + (f"?{request.query}" if request.query else "")
    call.content_type = request.headers.get(b"content-type", JSON)
    return call


def read_models_call(state: RouterState, request: HttpRequest) -> Call:
    """A question for the list of models, for any engine of the key's first pool. Raises ApiError.

    A key for some models may not read a list of all.
    """
    access = calls.access_of(state, request.headers)
    if request.method != "GET":
        raise ApiError(405, f"{request.path} takes GET only, not {request.method}.")
    pool, key = access.grants[0]
    if key.models is not None:
        message = f"The engines' list has all models, and this key ({key.id}) is for some."
        raise ApiError(403, message, code="models-not-listed")
    model = pool.document.models[0].name
    parsed = _parsed(pool, model, request, _Passed())
    call = calls.call_of(request, pool, key, path=request.path, parsed=parsed, body=b"")
    call.method, call.target = request.method, request.path
    return call


def is_open(path: str) -> bool:
    """Whether a path is one that users of an engine may ask."""
    if not _PLAIN.fullmatch(path) or "/.." in path or path.startswith(_MANAGING + _STORED):
        return False
    return path.startswith(("/v1/", "/v2/")) or path in _OPEN


def check_body(body: bytes) -> None:
    """Raise ApiError for a body with members that are the router's alone to set.

    Other bodies than JSON are not looked into.
    """
    if body.lstrip().startswith(b"{"):
        calls.refuse_router_members(body)
    elif json.detect_encoding(body) != "utf-8":
        # Engines would read such JSON, and with it members that nobody looked at here.
        raise ApiError(400, "The body must be UTF-8 without a byte order mark.")


def _fields(request: HttpRequest) -> _Passed:
    """Model and stream of a JSON body."""
    check_body(request.body)
    if not request.body.lstrip().startswith(b"{"):
        return _Passed()
    try:
        return _PASSED.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, f"The body cannot be read: {error}.") from error


def _for_model(body: bytes, model: str) -> bytes:
    """Raises ApiError: members that nobody reads here may have names that are no text."""
    try:
        return with_model(body, model)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, f"The body cannot be read: {error}.") from error


def _pool_of(access: Access, model: str | None, path: str) -> tuple[LoadedPool, KeySpec, str]:
    """The pool of the model, else the first that passes; a key for some models must name one."""
    if model is not None:
        found = access.pool_of(model)
        if found is None:
            raise ApiError(404, f"The model `{model}` does not exist.", param="model")
        if not _passes(found[0]):
            raise _unknown(path)
        return *found, model
    for pool, key in access.grants:
        if _passes(pool):
            if key.models is not None:
                raise ApiError(400, "This key is for some models; name one.", param="model")
            return pool, key, pool.document.models[0].name
    raise _unknown(path)


def _passes(pool: LoadedPool) -> bool:
    return pool.document.limits.unknown_paths == "pass"


def _unknown(path: str) -> ApiError:
    known = ", ".join((*PATHS, "/v1/models", "/v1/decide", "/v1/explain"))
    return ApiError(404, f"The path {path} is not served here; known are {known}.")


def _parsed(pool: LoadedPool, model: str, request: HttpRequest, fields: _Passed) -> ParsedBody:
    """A prompt of unknown form: no keys, and a size that is a guess."""
    size = len(request.body)
    ratio = pool.router.bytes_per_token(model)
    return ParsedBody(
        model=model,
        stream=bool(fields.stream),
        include_usage=True,
        max_tokens=None,
        n=1,
        prompt_bytes=size,
        prompt_tokens=max(1, round(size / ratio)),
        block_keys=np.zeros(0, dtype=np.uint64),
        chunk_tokens=pool.document.prompt_identity.chunk_bytes / ratio,
        has_exact_tokens=False,
        user=None,
        has_output=bool(fields.stream),
        can_split=False,
        degraded="unknown-path",
    )
