"""From a client's HTTP request to a call: who asks, which pool, what a decision needs to know."""

import re
import secrets
from dataclasses import dataclass
from typing import NoReturn

import msgspec

from routing.core.document import KeySpec, PromptIdentity
from routing.core.openai import ParsedBody, RequestError, parse_request
from routing.core.request import InferenceRequest
from routing.servers import clock
from routing.servers.documents import Access, KeyRefusedError, LoadedPool
from routing.servers.errors import ApiError
from routing.servers.http_parts import HttpRequest
from routing.servers.state import RouterState

COMPLETION_PATHS = ("/v1/chat/completions", "/v1/completions")
SESSION_HEADERS = (
    b"x-session-token",
    b"x-session-id",
    b"session-id",
    b"x-smg-routing-key",
    b"x-dynamo-session-id",
    b"x-claude-code-session-id",
    b"x-session-affinity",
)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


_ABSENT = msgspec.Raw(b"null")


class _Outline(msgspec.Struct):
    """The model, and members that tell an engine to fetch KV from an address: ours alone to set."""

    model: str | None = None
    kv_transfer_params: msgspec.Raw = _ABSENT
    ec_transfer_params: msgspec.Raw = _ABSENT
    bootstrap_host: msgspec.Raw = _ABSENT
    bootstrap_port: msgspec.Raw = _ABSENT
    bootstrap_room: msgspec.Raw = _ABSENT


_OUTLINE = msgspec.json.Decoder(_Outline)
_ROUTER_MEMBERS = tuple(name for name in _Outline.__struct_fields__ if name != "model")


@dataclass(slots=True, kw_only=True)
class Call:
    """A client's request that may be served."""

    pool: LoadedPool
    key: KeySpec
    request: InferenceRequest
    body: bytes
    received_at: float
    """Unix time."""
    trace_headers: bytes
    """Trace context to hand on, as header lines."""


def access_of(state: RouterState, headers: dict[bytes, bytes]) -> Access:
    """What the presented key opens. Raises ApiError 401."""
    scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
    usable = secret.strip() if scheme.lower() == b"bearer" else b""
    try:
        return state.directory.access(usable, now=clock.unix_now())
    except KeyRefusedError as error:
        raise ApiError(401, error.message, code=error.code) from error


def read_call(state: RouterState, request: HttpRequest, *, path: str, body: bytes) -> Call:
    """Authenticate, find the pool and parse, once. Raises ApiError."""
    access = access_of(state, request.headers)
    if request.headers.get(b"content-encoding", b"identity") != b"identity":
        raise ApiError(415, "Bodies are read without content-encoding only.")
    pool, key, model = _pool_of(access, path, body)
    limit = pool.document.limits.body_bytes
    if len(body) > limit:
        raise ApiError(413, f"The body has {len(body)} bytes; this pool reads {limit}.")
    parsed = _parse(pool, path, model, body)
    return Call(
        pool=pool,
        key=key,
        request=_inference_request(request, key, path=path, parsed=parsed),
        body=body,
        received_at=clock.unix_now(),
        trace_headers=_trace_headers(request),
    )


def _pool_of(access: Access, path: str, body: bytes) -> tuple[LoadedPool, KeySpec, str]:
    try:
        outline = _OUTLINE.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        _explain(path, body)
    if outline.model is None:
        _explain(path, body)
    for name in _ROUTER_MEMBERS:
        if bytes(getattr(outline, name)) != b"null":
            raise ApiError(400, f"{name} is set by the router; leave it out.", param=name)
    found = access.pool_of(outline.model)
    if found is None:
        raise ApiError(404, f"The model `{outline.model}` does not exist.", param="model")
    return *found, outline.model


def _explain(path: str, body: bytes) -> NoReturn:
    """Raise the error of a body that has no readable model."""
    try:
        parse_request(path, body, identity=PromptIdentity())
    except RequestError as error:
        raise _api_error(error) from error
    raise ApiError(400, "The body needs a member model with the name of a model.", param="model")


def _parse(pool: LoadedPool, path: str, model: str, body: bytes) -> ParsedBody:
    try:
        return parse_request(
            path,
            body,
            identity=pool.document.prompt_identity,
            bytes_per_token=pool.router.bytes_per_token(model),
        )
    except RequestError as error:
        raise _api_error(error) from error


def _inference_request(
    request: HttpRequest, key: KeySpec, *, path: str, parsed: ParsedBody
) -> InferenceRequest:
    return InferenceRequest(
        id=_request_id(request),
        path=path,
        model=parsed.model,
        tenant=key.tenant,
        project=key.project,
        key_id=key.id,
        parsed=parsed,
        arrived_at=clock.monotonic(),
        session=_session(request) or parsed.user,
    )


def _api_error(error: RequestError) -> ApiError:
    return ApiError(
        error.status, error.message, code=error.code, param=error.param, type=error.type
    )


def _request_id(request: HttpRequest) -> str:
    """The client's id when it is usable in a header and a file, else a random one."""
    given = request.headers.get(b"x-request-id", b"")
    return given.decode("ascii") if _REQUEST_ID.fullmatch(given) else secrets.token_hex(12)


def _session(request: HttpRequest) -> str | None:
    for name in SESSION_HEADERS:
        value = request.headers.get(name)
        if value:
            return value.decode("latin-1")[:200]
    return None


def _trace_headers(request: HttpRequest) -> bytes:
    return b"".join(
        b"%b: %b\r\n" % (name, request.headers[name])
        for name in (b"traceparent", b"tracestate")
        if name in request.headers
    )
