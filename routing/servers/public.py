"""The inference port: which path does what, for holders of an inference key."""

from typing import Any

import msgspec

from routing.core.document import ModelSpec, PolicyName
from routing.core.record import record_of
from routing.explain.explanation import Language, explain
from routing.explain.own import own_answer
from routing.servers import calls, clock, limits_headers, passing, proxy, reservations
from routing.servers.calls import COMPLETION_PATHS, Call
from routing.servers.delivery import answer_headers
from routing.servers.documents import LoadedPool
from routing.servers.errors import ApiError
from routing.servers.failures import EngineAnswerError
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest, Refused
from routing.servers.reservations import Reservations
from routing.servers.state import RouterState

EXPLAIN_PATHS = ("/v1/decide", "/v1/explain")


class _Question(msgspec.Struct, forbid_unknown_fields=True):
    """A completion that is not to be run, only to be decided."""

    path: str
    body: msgspec.Raw
    policy: PolicyName | None = None
    language: Language = "en"


class PublicPort:
    """Answers requests of the inference port."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self.reservations = Reservations(state)

    async def __call__(self, request: HttpRequest, client: Connection) -> None:
        """Answer one request; every error leaves in the form of its API."""
        try:
            await self._route(request, client)
        except ApiError as error:
            if not error.is_counted:
                self._state.requests.count(error.status)
            _respond_error(client, error, request.path, calls.id_line(request.headers))

    def gate(self, headers: dict[bytes, bytes]) -> Refused | None:
        """Refuse a large body without a usable key before it is read."""
        return calls.refusal_of_key(self._state, headers)

    async def _route(self, request: HttpRequest, client: Connection) -> None:
        path = request.path
        if path in COMPLETION_PATHS:
            _require(request, "POST")
            call = calls.read_call(self._state, request, path=path, body=request.body)
            await self._serve(call, client)
        elif path in EXPLAIN_PATHS:
            _require(request, "POST")
            client.respond(200, self._decide(request))
        elif path in reservations.PATHS:
            _require(request, "POST")
            client.respond(*await self.reservations.answer(request))
        elif path == "/v1/models" or path.startswith("/v1/models/"):
            _require(request, "GET")
            client.respond(200, self._models(request))
        else:
            await self._serve(passing.read_call(self._state, request), client)

    async def _serve(self, call: Call, client: Connection) -> None:
        try:
            await proxy.serve(self._state, call, client)
        except ApiError as error:
            # Counted with its attempt already.
            _respond_error(client, error, call.request.path, _headers(call))
        except EngineAnswerError as error:
            client.respond(
                error.answer.status,
                error.answer.body,
                content_type=error.answer.headers.get(b"content-type", b"application/json"),
                headers=_headers(call),
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
        is_explained = request.path == "/v1/explain"
        if (is_explained or question.policy is not None) and not call.key.may_test:
            # Prices tell of the fleet and its load, and a policy that was asked once is kept.
            raise ApiError(
                403,
                f"To explain and to name a policy is for keys that may test; this key"
                f" ({call.key.id}) may not.",
                code="may-not-test",
            )
        decision = call.pool.router.decide(
            call.request,
            now=clock.monotonic(),
            policy=question.policy,
            keep="always" if is_explained else None,
        )
        if is_explained:
            record = record_of(decision)
            record["explanation"] = explain(record, language=question.language)
            return msgspec.json.encode(record)
        told = msgspec.structs.asdict(own_answer(decision, language=question.language))
        return msgspec.json.encode(told | {"headers": _named(answer_headers(call, decision))})

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


def _headers(call: Call) -> bytes:
    return b"x-request-id: %b\r\n%b" % (call.request.id.encode(), limits_headers.lines(call))


def _named(lines: bytes) -> dict[str, str]:
    """Header lines by name."""
    pairs = (line.split(": ", 1) for line in lines.decode("latin-1").splitlines())
    return dict(pair for pair in pairs if len(pair) == 2)


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


def _respond_error(client: Connection, error: ApiError, path: str, headers: bytes = b"") -> None:
    client.respond(error.status, error.body(path), headers=headers + error.header_lines())
