"""What stands at the loop's process boundary: a proxy before the engine host, and a router.

Both ask a function before they answer; it may kill the caller, who then gets no answer.
"""

import hashlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from routing.core.document import encode_document, parse_document

Watch = Callable[[str, str, str], bool]
"""(method, path, "before" or "after") -> True if the caller was killed."""


def nobody(_method: str, _path: str, _when: str) -> bool:
    """Let everything pass."""
    return False


class Boundary(ThreadingHTTPServer):
    """A server on a free loopback port, in a thread."""

    daemon_threads = True

    def __init__(self, respond: Callable[[str, str, bytes, dict[str, str]], tuple[int, bytes]]):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.respond, self.watch = respond, nobody
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Boundary

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.watch(self.command, self.path, "before"):
            return
        status, answer = self.server.respond(self.command, self.path, body, dict(self.headers))
        if self.server.watch(self.command, self.path, "after"):
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_PUT(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Tests look at what was asked, not at lines."""


def proxy_of(url: str) -> Boundary:
    """Passes everything on to an engine host or to a cluster."""

    def respond(method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        names = {"authorization", "content-type", "accept"}
        kept = {name: value for name, value in headers.items() if name.lower() in names}
        answer = httpx.request(method, url + path, content=body, headers=kept, timeout=10)
        return answer.status_code, answer.content

    return Boundary(respond)


class ScriptedRouter:
    """A router that takes documents, or refuses them as it is told."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.inflight = 0
        self.received: list[int] = []
        self.requests = {"total": 0, "failed": 0}
        self.answers: dict[int, int] = {}
        """How many requests of every pool got which status."""
        self.server = Boundary(self._respond)
        self.url = self.server.url

    def close(self) -> None:
        self.server.close()

    def _respond(self, method: str, path: str, body: bytes, _: Any) -> tuple[int, bytes]:
        if method == "PUT" and path == "/admin/pool-document":
            return self._take(json.loads(body))
        if path == "/admin/state":
            return 200, json.dumps(self._state()).encode()
        if path == "/metrics":
            return 200, self._page().encode()
        return 404, b"{}"

    def _take(self, document: dict[str, Any]) -> tuple[int, bytes]:
        self.received.append(document["version"])
        if self.refusal is not None:
            status, body = self.refusal
            return status, json.dumps(body).encode()
        parsed = parse_document(json.dumps(document).encode())
        digest = hashlib.sha256(encode_document(parsed)).hexdigest()
        self.documents[document["pool"]] = {**document, "hash": digest}
        return 200, json.dumps({"version": document["version"], "hash": digest}).encode()

    def _page(self) -> str:
        lines = [
            f'consort_requests_total{{outcome="ok",pool="{pool}",status="{status}"}} {count}.0'
            for pool in self.documents
            for status, count in self.answers.items()
        ]
        # A router's page is never empty: that would be no answer.
        return "\n".join(["# scripted", *lines])

    def _state(self) -> dict[str, Any]:
        return {
            "router": "scripted", "version": "1", "started_at": 1.0,
            "documents": [
                {"pool": pool, "version": row["version"], "hash": row["hash"], "since": 1.0}
                for pool, row in self.documents.items()
            ],
            "pools": {
                pool: {
                    "endpoints": [
                        {"id": endpoint["id"], "inflight_requests": self.inflight}
                        for endpoint in row["endpoints"]
                    ]
                }
                for pool, row in self.documents.items()
            },
            "requests": self.requests,
        }  # fmt: skip
