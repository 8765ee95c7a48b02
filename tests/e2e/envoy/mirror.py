"""Servers in threads that tell what reached them: an engine that shows requests, and a trap."""

import hashlib
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

MODEL = "mirror"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._answer(b"vllm:num_requests_running 0.0\nvllm:num_requests_waiting 0.0\n")
        else:
            self._answer(json.dumps(self._seen(b"")).encode())

    def do_POST(self) -> None:
        body = self._body()
        seen = self._seen(body)
        if json.loads(body).get("stream"):
            self._stream()
        else:
            self._answer(json.dumps(seen).encode())

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size + 2)[:-2])
        self.rfile.readline()
        return b"".join(parts)

    def _seen(self, body: bytes) -> dict[str, Any]:
        self.server.hits[self.path] += 1
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": MODEL,
            "choices": [],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
            "seen": {
                "path": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "sha256": hashlib.sha256(body).hexdigest(),
                "bytes": len(body),
            },
        }

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        """One event, and the rest when a test has seen it."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        delta = {"index": 0, "delta": {"content": "first"}, "finish_reason": None}
        event = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [delta]}
        self._chunk(b"data: " + json.dumps(event | {"model": MODEL}).encode() + b"\n\n")
        self.server.go.wait(20)
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nothing: tests ask."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hits: Counter[str] = Counter()
        self.go = threading.Event()


class Mirror:
    """An engine whose answer tells what it was sent; a stream of it waits for `go`."""

    def __enter__(self) -> Self:
        self._server = _Server()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.go.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def hits(self) -> int:
        """Requests other than for metrics."""
        return self._server.hits.total()

    @property
    def go(self) -> threading.Event:
        """Set it to let streams end."""
        return self._server.go
