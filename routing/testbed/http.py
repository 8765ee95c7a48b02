"""A small HTTP/1.1 server over asyncio and httptools, made for many streams at little cost."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools
import orjson

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_QUEUED_BYTES = 4 * 1024 * 1024
"""A client that reads so slowly that more than this waits for it is cut off."""
MAX_PIPELINED = 16
MAX_HEADER_BYTES = 64 * 1024

_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Payload Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
LAST_CHUNK = b"0\r\n\r\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"vary: Origin\r\ntransfer-encoding: chunked\r\n\r\n"
)

Handler = Callable[["Exchange"], None]


def chunk(data: bytes) -> bytes:
    """Data as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Exchange:
    """One request and its answer, which must end with `send` or with `end`."""

    __slots__ = ("_connection", "body", "headers", "method", "on_abort", "path")

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self.method = ""
        self.path = ""
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.on_abort: Callable[[], None] | None = None
        """Called at most once, when the client leaves before the answer ended."""

    def send(self, status: int, body: bytes, content_type: bytes = b"application/json") -> None:
        """Answer with a whole body."""
        head = (
            b"HTTP/1.1 %d %b\r\nserver: uvicorn\r\ncontent-length: %d\r\n"
            b"content-type: %b\r\nvary: Origin\r\n\r\n"
        )
        reason = _REASONS.get(status, "Unknown").encode()
        self.write(head % (status, reason, len(body), content_type) + body)
        self.end()

    def send_json(self, status: int, value: object) -> None:
        """Answer with JSON."""
        self.send(status, orjson.dumps(value))

    def write(self, data: bytes) -> None:
        """Send bytes of the answer as they are."""
        self._connection.write(data)

    def cut(self) -> None:
        """Break a begun answer off; the client sees that it is not whole."""
        self.on_abort = None
        self._connection.cut()

    def end(self) -> None:
        """The answer is complete; the next request of the connection is served."""
        self.on_abort = None
        self._connection.finished(self)


class Connection(asyncio.Protocol):
    """One client. Its requests are answered one after the other, in order."""

    def __init__(self, handler: Handler, open_connections: "set[Connection]") -> None:
        self._handler = handler
        self._open = open_connections
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Exchange] = deque()
        self._reading: Exchange | None = None
        self._transport: asyncio.Transport | None = None
        self._closing = False
        self._header_bytes = 0

    @property
    def busy(self) -> bool:
        """Whether an answer is under way."""
        return bool(self._queue)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket over."""
        # uvloop's transports do not inherit from asyncio's, they only have its methods.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=MAX_QUEUED_BYTES)
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the answers under way that nobody listens."""
        self._open.discard(self)
        self._transport = None
        while self._queue:
            exchange = self._queue.popleft()
            if exchange.on_abort is not None:
                exchange.on_abort()

    def pause_writing(self) -> None:
        """More than MAX_QUEUED_BYTES wait: give the client up."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse; a request that is not HTTP closes the connection."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.close()
        except httptools.HttpParserError:
            self.write(
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.close()

    def write(self, data: bytes) -> None:
        """Send, unless the client left."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Close when everything was sent."""
        if self._transport is not None:
            self._transport.close()

    def cut(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def shut_down(self) -> None:
        """Take no further request; close now or when the answer under way ends."""
        self._closing = True
        if not self._queue:
            self.close()

    def finished(self, exchange: Exchange) -> None:
        """An answer is complete: start the next one."""
        if not self._queue or self._queue[0] is not exchange:
            return
        self._queue.popleft()
        if self._closing:
            self.close()
        elif self._queue:
            self._handler(self._queue[0])

    def on_message_begin(self) -> None:
        """Callback of the parser."""
        self._reading = Exchange(self)
        self._header_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Callback of the parser; may come in parts."""
        if self._reading is not None:
            self._reading.path += url.decode("latin-1")
            self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Callback of the parser."""
        if self._reading is not None:
            self._reading.headers[name.lower()] = value
            self._count_header(len(name) + len(value))

    def on_headers_complete(self) -> None:
        """Callback of the parser."""
        if self._reading is not None:
            self._reading.method = self._parser.get_method().decode()
            if self._reading.headers.get(b"expect", b"").lower() == b"100-continue":
                self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Callback of the parser."""
        if self._reading is None:
            return
        self._reading.body += body
        if len(self._reading.body) > MAX_BODY_BYTES:
            self._refuse(b"413 Payload Too Large")

    def on_message_complete(self) -> None:
        """Callback of the parser: a request is there."""
        exchange, self._reading = self._reading, None
        if exchange is None:
            return
        if self._closing or len(self._queue) >= MAX_PIPELINED:
            self._refuse(b"503 Service Unavailable")
            return
        if exchange.headers.get(b"connection", b"").lower() == b"close":
            self._closing = True
        self._queue.append(exchange)
        if len(self._queue) == 1:
            self._handler(exchange)

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > MAX_HEADER_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")

    def _refuse(self, status: bytes) -> None:
        self._reading = None
        self.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
        self.close()


class Server:
    """Listens on an address and hands every request to a handler."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which the system chose when 0 was asked for. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._handler, self._connections), host, port, backlog=1024
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self, grace_seconds: float) -> None:
        """Stop listening, let answers under way end for at most `grace_seconds`, close the rest."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.shut_down()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_seconds
        while any(connection.busy for connection in self._connections):
            if loop.time() >= deadline:
                break
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.close()
