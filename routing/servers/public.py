"""The inference port: which path does what, for holders of an inference key."""

from typing import Any

import msgspec

from routing.core.document import ModelSpec, PolicyName
from routing.servers import calls, clock, proxy
from routing.servers.calls import COMPLETION_PATHS
from routing.servers.documents import LoadedPool
from routing.servers.errors import ApiError
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest, Refused
from routing.servers.proxy import EngineAnswerError
from routing.servers.state import RouterState

EXPLAIN_PATHS = ("/v1/decide", "/v1/explain")


class _Question(msgspec.Struct, forbid_unknown_fields=True):
    """A completion that is not to be run, only to be decided."""

    path: str
    body: msgspec.Raw
    policy: PolicyName | None = None


class PublicPort:
    """Answers requests of the inference port."""

    def __init__(self, state: RouterState) -> None:
        self._state = state

    async def __call__(self, request: HttpRequest, client: Connection) -> None:
        """Answer one request; every error leaves in OpenAI's form."""
        try:
            await self._route(request, client)
        except ApiError as error:
            counts = self._state.requests
            counts.total += 1
            counts.by_status[error.status] += 1
            _respond_error(client, error)

    def gate(self, headers: dict[bytes, bytes]) -> Refused | None:
        """Refuse a large body without a usable key before it is read."""
        try:
            calls.access_of(self._state, headers)
        except ApiError as error:
            return error.status, error.body()
        return None

    async def _route(self, request: HttpRequest, client: Connection) -> None:
        path = request.path
        if path in COMPLETION_PATHS:
            _require(request, "POST")
            await self._complete(request, client)
        elif path in EXPLAIN_PATHS:
            _require(request, "POST")
            client.respond(200, self._decide(request))
        elif path == "/v1/models" or path.startswith("/v1/models/"):
            _require(request, "GET")
            client.respond(200, self._models(request))
        else:
            known = ", ".join((*COMPLETION_PATHS, "/v1/models", *EXPLAIN_PATHS))
            raise ApiError(404, f"The path {path} is not served here; known are {known}.")

    async def _complete(self, request: HttpRequest, client: Connection) -> None:
        call = calls.read_call(self._state, request, path=request.path, body=request.body)
        try:
            await proxy.serve(self._state, call, client)
        except ApiError as error:
            # Counted with its attempt already.
            headers = b"x-request-id: %b\r\n" % call.request.id.encode()
            _respond_error(client, error, headers)
        except EngineAnswerError as error:
            client.respond(
                error.answer.status,
                error.answer.body,
                content_type=error.answer.headers.get(b"content-type", b"application/json"),
                headers=b"x-request-id: %b\r\n" % call.request.id.encode(),
            )

    def _decide(self, request: HttpRequest) -> bytes:
        calls.access_of(self._state, request.headers)
        try:
            question = msgspec.json.decode(request.body, type=_Question)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"The body must be {{path, body}} with a completion as its body: {error}."
            raise ApiError(400, message) from error
        if question.path not in COMPLETION_PATHS:
            allowed = ", ".join(COMPLETION_PATHS)
            raise ApiError(400, f"path must be one of {allowed}.", param="path")
        call = calls.read_call(self._state, request, path=question.path, body=bytes(question.body))
        decision = call.pool.router.decide(
            call.request, now=clock.monotonic(), policy=question.policy
        )
        is_explained = request.path == "/v1/explain"
        record = decision.record(with_candidates=is_explained)
        if not is_explained:
            del record["candidates"]
        return msgspec.json.encode(record)

    def _models(self, request: HttpRequest) -> bytes:
        models = {
            model.name: _model(pool, model)
            for pool, model in reversed(calls.access_of(self._state, request.headers).models())
        }
        name = request.path.removeprefix("/v1/models").removeprefix("/")
        if not name:
            listed = [models[known] for known in sorted(models)]
            return msgspec.json.encode({"object": "list", "data": listed})
        if name not in models:
            raise ApiError(404, f"The model `{name}` does not exist.", param="model")
        return msgspec.json.encode(models[name])


def _model(pool: LoadedPool, model: ModelSpec) -> dict[str, Any]:
    return {
        "id": model.name,
        "object": "model",
        "created": int(pool.since),
        "owned_by": "consort",
        "root": model.adapter_of or model.name,
        "parent": model.adapter_of,
        "max_model_len": model.max_model_len,
    }


def _require(request: HttpRequest, method: str) -> None:
    if request.method != method:
        raise ApiError(405, f"{request.path} takes {method} only, not {request.method}.")


def _respond_error(client: Connection, error: ApiError, headers: bytes = b"") -> None:
    client.respond(error.status, error.body(), headers=headers + error.header_lines())
