"""A loopback server that answers what a test tells it to, also what no API server would say."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from inventory.kubernetes.connection import Connection
from tests.routing.servers.faces.certificates import CERTIFICATES

Answer = Callable[["Asked"], None]
NODE = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "resourceVersion": "1"}}
KINDS = {"resources": [{"name": "nodes", "kind": "Node", "namespaced": False}]}


class Asked(BaseHTTPRequestHandler):
    """One request; `send` answers it. Anything may be written to `wfile` instead."""

    protocol_version = "HTTP/1.1"
    answer: Answer
    log: list["tuple[str, str, dict[str, str]]"]

    def do_GET(self) -> None:
        """Any request of any method."""
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        self.log.append((self.command, self.path, dict(self.headers)))
        try:
            type(self).answer(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names that http.server looks for

    def send(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Answer with JSON, or with bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Be quiet."""


class Answering:
    """The server of one test."""

    def __init__(self, server: ThreadingHTTPServer, asked: type[Asked], scheme: str) -> None:
        self.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        self.asked = asked.log

    @property
    def connection(self) -> Connection:
        """A connection to it without credentials."""
        return Connection(server=self.url, token="secret-token")

    @property
    def paths(self) -> list[str]:
        """What was asked, without the query."""
        return [path.split("?")[0] for _method, path, _headers in self.asked]


@contextmanager
def answering(answer: Answer, *, certificate: str = "", asks_for: str = "") -> Iterator[Answering]:
    """A server that answers every request with `answer`; with TLS if a certificate is named.

    `asks_for` names the authority whose certificate a client must show.
    """
    asked = type("TheAsked", (Asked,), {"answer": staticmethod(answer), "log": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), asked)
    server.daemon_threads = True
    server.block_on_close = False
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        stem = CERTIFICATES / certificate
        context.load_cert_chain(stem.with_suffix(".crt"), stem.with_suffix(".key"))
        if asks_for:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(CERTIFICATES / f"{asks_for}.crt")
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Answering(server, asked, "https" if certificate else "http")
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def nodes(*pages: Any) -> Answer:
    """Answers discovery, and then the pages one after another as lists of nodes."""
    left = list(pages)

    def answer(asked: Asked) -> None:
        asked.send(KINDS if asked.path == "/api/v1" else left.pop(0))

    return answer
