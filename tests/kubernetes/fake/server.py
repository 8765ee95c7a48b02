"""The fake API server on loopback: HTTP/1.1 with keep-alive, chunked watches, faults."""

import contextlib
import socket
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.faults import WRITES, Faults
from tests.kubernetes.fake.paths import Request, find_target, is_watch
from tests.kubernetes.fake.requests import Answerer
from tests.kubernetes.fake.watches import WatchStream

MOST_BODY = 3 * 1024 * 1024
METHODS = WRITES | {"GET"}


@dataclass(frozen=True)
class Write:
    """One request that wanted to change something; `changed`: it did."""

    method: str
    path: str
    manager: str
    status: int
    changed: bool


class FakeServer(ThreadingHTTPServer):
    """Serves one `Answerer`; what was asked is in `requests` and `writes`."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, answerer: Answerer, port: int = 0, token: str | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answerer, self.token = answerer, token
        self.faults = Faults()
        self.requests: list[tuple[str, str]] = []
        self.writes: list[Write] = []
        self._watches_from = 0
        self._open: set[socket.socket] = set()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        """Serve in a thread."""
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Answer nobody any more, and let go of those who wait."""
        self.faults.clear()
        self.cut_watches()
        self.shutdown()
        self.server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def cut_watches(self) -> None:
        """Break all watches off, in the middle of their answer."""
        store = self.answerer.api.store
        with store.changed:
            self._watches_from += 1
            store.changed.notify_all()

    def watch_generation(self) -> int:
        """Grows with every cut."""
        return self._watches_from

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection, which `stop` may close."""
        self._open.add(request)
        try:
            super().finish_request(request, client_address)
        finally:
            self._open.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up is no error of the server; anything else is shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    server: FakeServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing: tests read `requests`."""

    def __getattr__(self, name: str) -> Any:
        """The base asks for `do_GET`, `do_POST` and so on: one door for all."""
        if name.removeprefix("do_") in METHODS:
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        try:
            request = self._request()
        except ApiError as error:
            self._fail(error)
            return
        self.server.requests.append((request.method, self.path))
        before = self.server.answerer.api.store.writes_of_this_thread()
        status = 0
        try:
            if not self._disturb(request):
                return
            self._authenticate(request)
            if is_watch(request):
                self._watch(request)
                return
            status, body = self.server.answerer.answer(request)
            self._note(request, status, before)
            self._send(status, body)
        except ApiError as error:
            self._note(request, error.status, before)
            self._fail(error)
        except OSError:
            raise
        except Exception as error:
            # A fault of the fake itself: the caller hears of it, and so does the test's output.
            self._fail(ApiError(500, f"{type(error).__name__}: {error}"))
            raise

    def _request(self) -> Request:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MOST_BODY:
            self.close_connection = True
            raise ApiError(413, f"Request entity too large: limit is {MOST_BODY}")
        body = self.rfile.read(length) if length else b""
        split = urlsplit(self.path)
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        headers = {key.lower(): value for key, value in self.headers.items()}
        return Request(self.command, split.path, query, headers, body)

    def _disturb(self, request: Request) -> bool:
        """Let the faults in force act; False: the request gets no answer."""
        for fault in self.server.faults.take(request.method, self.path):
            gone = self.server.faults.released
            if fault.silent:
                gone.wait()
                self.close_connection = True
                return False
            if fault.seconds:
                gone.wait(fault.seconds)
            if fault.error:
                raise fault.error
        return True

    def _authenticate(self, request: Request) -> None:
        wanted = self.server.token
        if wanted and request.headers.get("authorization") != f"Bearer {wanted}":
            raise ApiError(401, "Unauthorized")

    def _note(self, request: Request, status: int, before: int) -> None:
        review = request.path.startswith("/apis/authorization.k8s.io/")
        if request.method in WRITES and not request.dry_run and not review:
            changed = self.server.answerer.api.store.writes_of_this_thread() > before
            self.server.writes.append(
                Write(request.method, request.path, request.manager, status, changed)
            )

    def _send(self, status: int, body: Any, retry_after: int | None = None) -> None:
        text = isinstance(body, str)
        raw = body.encode() if text else orjson.dumps(body, default=str)
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if text else "application/json")
        self.send_header("Content-Length", str(len(raw)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    def _fail(self, error: ApiError) -> None:
        self._send(error.status, error.body(), error.retry_after)

    def _watch(self, request: Request) -> None:
        server = self.server
        target = find_target(server.answerer.api, request.path)
        server.answerer.check_rights(request, target)
        stream = WatchStream(server.answerer.api.store, target, request)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        generation = server.watch_generation()
        for event in stream.events(lambda: generation == server.watch_generation()):
            raw = orjson.dumps(event, default=str) + b"\n"
            self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
            self.wfile.flush()
        if generation != server.watch_generation():
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
