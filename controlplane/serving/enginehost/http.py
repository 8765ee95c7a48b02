"""The engine host's HTTP face: loopback only, a bearer token, JSON in and out."""

import hmac
import json
import logging
import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from controlplane.serving.enginehost.folders import FolderPathError, FolderWatch
from controlplane.serving.enginehost.spec import SpecError, checked_name, parse_spec
from controlplane.serving.enginehost.supervisor import FencedError, HostFullError, Supervisor

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 256 * 1024
MAX_LOG_BYTES = 64 * 1024
_ENGINE = re.compile(r"^/engines/(?P<name>[^/]+)(?P<logs>/logs)?$")


class RefusedError(Exception):
    """A request was answered with no; status, code and a sentence."""

    def __init__(self, status: HTTPStatus, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


class EngineHostServer(ThreadingHTTPServer):
    """A server that knows its supervisor and its token."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], supervisor: Supervisor, token: str) -> None:
        super().__init__(address, EngineHostHandler)
        self.supervisor, self.token = supervisor, token
        self.folders = FolderWatch()


class EngineHostHandler(BaseHTTPRequestHandler):
    """PUT, GET and DELETE of engines."""

    server: EngineHostServer
    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float] = 30.0

    def do_GET(self) -> None:
        """`/livez`, `/engines`, `/engines/{name}`, `/engines/{name}/logs?bytes=n`."""
        self._answer(self._get)

    def do_PUT(self) -> None:
        """`/engines/{name}`: start or replace; `/folders`: count a folder of model files."""
        self._answer(self._put)

    def do_DELETE(self) -> None:
        """`/engines/{name}?fencing_token=n`: end it."""
        self._answer(self._delete)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - name of the base class
        """Requests are frequent and dull; only refusals are logged."""

    def _answer(self, handle: Any) -> None:
        try:
            self._authenticate()
            status, body = handle()
        except RefusedError as error:
            logger.info("%s %s refused: %s", self.command, self.path, error.detail)
            status, body = error.status, {"code": error.code, "detail": error.detail}
        except Exception:  # edge of the process: the caller gets a 500, the log the traceback
            logger.exception("%s %s failed", self.command, self.path)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            body = {"code": "failed", "detail": "The engine host failed; its log says why."}
        self._send(status, body)

    def _send(self, status: HTTPStatus, body: Any) -> None:
        is_text = isinstance(body, bytes)
        payload = body if is_text else json.dumps(body).encode()
        self.send_response(status)
        kind = "text/plain; charset=utf-8" if is_text else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        if status >= HTTPStatus.BAD_REQUEST:
            # A refused body may be unread; the connection cannot be used again.
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(payload)

    def _authenticate(self) -> None:
        if urlsplit(self.path).path == "/livez":
            return
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.server.token.encode()):
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED, "token-wrong", "The bearer token is missing or wrong."
            )

    def _get(self) -> tuple[HTTPStatus, Any]:
        path = urlsplit(self.path)
        if path.path == "/livez":
            return HTTPStatus.OK, {"state": "live"}
        if path.path == "/engines":
            return HTTPStatus.OK, {"engines": self.server.supervisor.all_seen()}
        name, wants_logs = self._engine()
        seen = self.server.supervisor.seen(name)
        if seen is None:
            raise _unknown(name)
        if wants_logs:
            size = min(_number(path.query, "bytes", MAX_LOG_BYTES), MAX_LOG_BYTES)
            return HTTPStatus.OK, self.server.supervisor.log_tail(name, size)
        return HTTPStatus.OK, seen

    def _put(self) -> tuple[HTTPStatus, Any]:
        if urlsplit(self.path).path == "/folders":
            return self._folder()
        name, _ = self._engine()
        try:
            spec = parse_spec(self._body())
            return HTTPStatus.ACCEPTED, self.server.supervisor.want(checked_name(name), spec)
        except SpecError as error:
            raise RefusedError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "spec-refused", str(error)
            ) from error
        except FencedError as error:
            raise RefusedError(HTTPStatus.CONFLICT, "fenced", str(error)) from error
        except HostFullError as error:
            raise RefusedError(HTTPStatus.CONFLICT, "host-full", str(error)) from error

    def _folder(self) -> tuple[HTTPStatus, Any]:
        body = self._body()
        path = body.get("path") if isinstance(body, dict) else None
        try:
            return HTTPStatus.ACCEPTED, self.server.folders.look(path)
        except FolderPathError as error:
            raise RefusedError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "folder-refused", str(error)
            ) from error

    def _delete(self) -> tuple[HTTPStatus, Any]:
        name, _ = self._engine()
        token = _number(urlsplit(self.path).query, "fencing_token", 0)
        try:
            known = self.server.supervisor.want_nothing(name, fencing_token=token)
        except FencedError as error:
            raise RefusedError(HTTPStatus.CONFLICT, "fenced", str(error)) from error
        if not known:
            raise _unknown(name)
        return HTTPStatus.ACCEPTED, self.server.supervisor.seen(name)

    def _engine(self) -> tuple[str, bool]:
        match = _ENGINE.match(urlsplit(self.path).path)
        if match is None:
            raise RefusedError(
                HTTPStatus.NOT_FOUND, "not-found", "There are /engines and /engines/{name}[/logs]."
            )
        return match["name"], match["logs"] is not None

    def _body(self) -> Any:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            raise RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "body-size",
                f"The body needs a Content-Length of at most {MAX_BODY_BYTES} bytes.",
            )
        try:
            return json.loads(self.rfile.read(int(length)))
        except ValueError as error:
            raise RefusedError(
                HTTPStatus.BAD_REQUEST, "not-json", f"The body is not JSON: {error}."
            ) from error


def _unknown(name: str) -> RefusedError:
    return RefusedError(
        HTTPStatus.NOT_FOUND, "engine-unknown", f"No engine '{name}' is known here."
    )


def _number(query: str, name: str, default: int) -> int:
    text = parse_qs(query).get(name, [str(default)])[-1]
    if not text.isdecimal():
        raise RefusedError(
            HTTPStatus.BAD_REQUEST, "query", f"{name}={text!r} is not a whole number from 0."
        )
    return int(text)
