"""From a client's HTTP request to a call: who asks, which pool, what a decision needs to know."""

import contextlib
import itertools
import re
import secrets
from typing import Any

import msgspec

from routing.core import openai
from routing.core.bodies.wire import ABSENT, ROUTER_MEMBERS
from routing.core.document import KeySpec
from routing.core.openai import (
    ExactReader,
    ParsedBody,
    Read,
    RequestError,
    parse_request,
    read_fields,
)
from routing.core.renaming import with_model
from routing.core.request import InferenceRequest
from routing.engines.base import replace_member
from routing.servers import clock, rewriting, wishes
from routing.servers.documents import Access, KeyRefusedError, LoadedPool, PoolReader
from routing.servers.errors import ApiError
from routing.servers.http_parts import HttpRequest, Refused
from routing.servers.state import RouterState

COMPLETION_PATHS = openai.PATHS
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_LIFE, _NUMBERS = secrets.token_hex(8), itertools.count()
"""Requests of one process are numbered: asking the system for luck costs more than a number."""


class _Outline(msgspec.Struct):
    """Members that are ours alone to set, in a body of unknown form."""

    kv_transfer_params: msgspec.Raw = ABSENT
    ec_transfer_params: msgspec.Raw = ABSENT
    bootstrap_host: msgspec.Raw = ABSENT
    bootstrap_port: msgspec.Raw = ABSENT
    bootstrap_room: msgspec.Raw = ABSENT


class _Named(msgspec.Struct):
    model: str


_NAMED = msgspec.json.Decoder(_Named)
_OUTLINE = msgspec.json.Decoder(_Outline)


class Call(msgspec.Struct, kw_only=True, eq=False):
    """A client's request that may be served."""

    pool: LoadedPool
    key: KeySpec
    request: InferenceRequest
    body: bytes
    received_at: float
    """Unix time."""
    trace_headers: bytes
    """Trace context to hand on, as header lines."""
    engine_id: str
    """The request's id for engines, unlike any other: an engine takes two requests of one id for
    one, so a client that sends another's id could end the other's request."""
    method: str = "POST"
    target: str
    """Path and query for the engine."""
    content_type: bytes = b"application/json"


def access_of(state: RouterState, headers: dict[bytes, bytes]) -> Access:
    """What the presented key opens. Raises ApiError 401."""
    try:
        return state.directory.access(secret_of(headers), now=clock.unix_now())
    except KeyRefusedError as error:
        raise ApiError(401, error.message, code=error.code) from error


def refusal_of_key(state: RouterState, headers: dict[bytes, bytes]) -> Refused | None:
    """What to answer to headers without a usable key; `None` lets the body be read."""
    try:
        access_of(state, headers)
    except ApiError as error:
        return error.status, error.body()
    return None


def secret_of(headers: dict[bytes, bytes]) -> bytes:
    """The presented key; b"" without one. Clients of Anthropic's API send it by itself."""
    scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
    usable = secret.strip() if scheme.lower() == b"bearer" else b""
    return usable or headers.get(b"x-api-key", b"").strip()


def read_call(state: RouterState, request: HttpRequest, *, path: str, body: bytes) -> Call:
    """Authenticate, find the pool and parse, once. Raises ApiError."""
    return read_for(access_of(state, request.headers), request, path=path, body=body)


def read_for(access: Access, request: HttpRequest, *, path: str, body: bytes) -> Call:
    """Find the pool among those that are open, and parse. Raises ApiError."""
    check_encoding(request)
    read = _read(access, path, body)
    _refuse_members(read[1])
    fields, asked = read[1], read[1].model
    pool, key = _pool_of(access, rewriting.asked_model(request.headers, asked))
    check_size(pool, body)
    fields.model = rewriting.served_model(pool, key, request.headers, model=asked, user=fields.user)
    if fields.model != asked:
        body = with_model(body, fields.model)
    salt = pool.salts.get(key.tenant)
    parsed = _parse(pool, path, read, body, salt=salt)
    if salt:
        body = replace_member(body, "cache_salt", msgspec.json.encode(parsed.cache_salt))
    call = call_of(request, pool, key, path=path, parsed=parsed, body=body)
    return call if fields.model == asked else renamed(call, asked)


def renamed(call: Call, asked: str) -> Call:
    """The call of somebody who asked for a model by another name than its own."""
    call.request = msgspec.structs.replace(call.request, asked_model=asked)
    return call


def check_encoding(request: HttpRequest) -> None:
    """Raise ApiError for a compressed body: a small one can hold any amount of memory."""
    if request.headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise ApiError(415, "Bodies are read without content-encoding only.")


def check_size(pool: LoadedPool, body: bytes) -> None:
    """Raise ApiError for a body over the pool's own limit."""
    limit = pool.document.limits.body_bytes
    if len(body) > limit:
        raise ApiError(413, f"The body has {len(body)} bytes; this pool reads {limit}.")


def call_of(
    request: HttpRequest,
    pool: LoadedPool,
    key: KeySpec,
    *,
    path: str,
    parsed: ParsedBody,
    body: bytes,
) -> Call:
    """Put a call together. Raises ApiError for a header that cannot be read."""
    name, engine_id = ids_of(request)
    return Call(
        pool=pool,
        key=key,
        request=_inference_request(request, pool, key, name=name, path=path, parsed=parsed),
        body=body,
        received_at=clock.unix_now(),
        trace_headers=_trace_headers(request),
        engine_id=engine_id,
        target=path,
    )


def _pool_of(access: Access, model: str) -> tuple[LoadedPool, KeySpec]:
    found = access.pool_of(model)
    if found is None:
        raise ApiError(404, f"The model `{model}` does not exist.", param="model")
    return found


def _read(access: Access, path: str, body: bytes) -> Read:
    try:
        return read_fields(path, body)
    except RequestError as error:
        # A model that does not exist is told before what else is wrong.
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            _pool_of(access, _NAMED.decode(body).model)
        raise _api_error(error) from error


def refuse_router_members(body: bytes) -> None:
    """Raise ApiError when a JSON body has a member that is the router's alone to set."""
    try:
        _refuse_members(_OUTLINE.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, f"The body is not JSON: {error}.") from error


def _refuse_members(fields: Any) -> None:
    for name in ROUTER_MEMBERS:
        value = getattr(fields, name)
        if value is not ABSENT and bytes(value) != b"null":
            raise ApiError(400, f"{name} is set by the router; leave it out.", param=name)


def _parse(pool: LoadedPool, path: str, read: Read, body: bytes, *, salt: str | None) -> ParsedBody:
    try:
        return parsed_of(pool, path, read, body, salt=salt)
    except RequestError as error:
        raise _api_error(error) from error


def parsed_of(
    pool: LoadedPool, path: str, read: Read, body: bytes, *, salt: str | None
) -> ParsedBody:
    """A body as the pool reads it: by its tokens where they are known. Raises RequestError."""
    model: str = read[1].model
    spec = pool.models.get(model)
    adapter = model if spec is not None and spec.adapter_of else None
    return parse_request(
        path,
        body,
        identity=pool.document.prompt_identity,
        bytes_per_token=pool.router.bytes_per_token(model),
        salt=salt or "",
        adapter=adapter,
        exact=None if pool.reader is None else _reader(pool.reader, adapter),
        read=read,
        most_tokens=None if spec is None else spec.max_model_len,
    )


def _reader(reader: PoolReader, adapter: str | None) -> ExactReader:
    return lambda path, body, salt, turns: reader.read(
        path, body, turns, adapter=adapter, salt=salt
    )


def _inference_request(
    request: HttpRequest,
    pool: LoadedPool,
    key: KeySpec,
    *,
    name: str,
    path: str,
    parsed: ParsedBody,
) -> InferenceRequest:
    return InferenceRequest(
        id=name,
        path=path,
        model=parsed.model,
        tenant=key.tenant,
        project=key.project,
        key_id=key.id,
        parsed=parsed,
        arrived_at=clock.monotonic(),
        adapter=parsed.model if pool.models[parsed.model].adapter_of else None,
        **wishes.of(
            request.headers,
            key,
            pool=pool.document.pool,
            user=parsed.user,
            objectives=pool.document.objectives,
        ),
    )


def _api_error(error: RequestError) -> ApiError:
    return ApiError(
        error.status, error.message, code=error.code, param=error.param, type=error.type
    )


def ids_of(request: HttpRequest) -> tuple[str, str]:
    """A request's id for its client, the client's own if it sent one, and `Call.engine_id`."""
    own = f"{_LIFE}{next(_NUMBERS):08x}"
    given = _given_id(request.headers)
    return given or own, f"{given}.{own}" if given else own


def id_line(headers: dict[bytes, bytes]) -> bytes:
    """The client's own id as a header line, for an answer without a call; b"" without one."""
    given = _given_id(headers)
    return b"x-request-id: %b\r\n" % given.encode() if given else b""


def _given_id(headers: dict[bytes, bytes]) -> str:
    """The client's id when it is usable in a header and a file, else ""."""
    given = headers.get(b"x-request-id", b"")
    return given.decode("ascii") if _REQUEST_ID.fullmatch(given) else ""


def _trace_headers(request: HttpRequest) -> bytes:
    found = b""
    for name in (b"traceparent", b"tracestate"):
        if name in request.headers:
            found += b"%b: %b\r\n" % (name, request.headers[name])
    return found
