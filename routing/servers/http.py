"""A small HTTP/1.1 server on raw asyncio: one parser per connection, one task per request.

A handler gets a complete request and the connection to answer on. Everything is bounded: headers,
bodies, connections, time, and what a slow reader leaves unsent: its producer is paused and its next
request waits. A client that goes away cancels the task of its request.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from typing import Any, cast

import httptools

from routing.servers import eager
from routing.servers.faces.http2.tls import Certificate
from routing.servers.http_parts import (
    ErrorBody,
    HttpRequest,
    Producer,
    Refused,
    ServerLimits,
    request_of,
    status_line,
)
from routing.servers.listening import Listener, listen

logger = logging.getLogger(__name__)

WRITE_HIGH_WATER = 256 * 1024
LINGER_SECONDS = TICK_SECONDS = 1.0
_UPGRADE = "Upgrading the connection is not offered; speak HTTP/1.1 without 'upgrade'."

Handler = Callable[[HttpRequest, "Connection"], Coroutine[Any, Any, None]]


class HttpServer:
    """Listens, keeps the set of open connections and ends idle ones."""

    def __init__(self, handler: Handler, *, limits: ServerLimits, error_body: ErrorBody) -> None:
        self.handler = handler
        self.limits = limits
        self.error_body = error_body
        self.connections: set[Connection] = set()
        self.closing = False
        self.held_bytes = 0
        self.date_line = b""
        self._listener: Listener | None = None
        self._ticker: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, certificate: Certificate | None = None) -> int:
        """Listen and return the port, which the kernel chooses for 0. Raises OSError."""
        self._listener, opened = await listen(lambda: Connection(self), host, port, certificate)
        self._tick()
        return opened

    async def stop(self, *, drain_seconds: float) -> None:
        """Accept nothing more, let running requests end for so long, then close what is left."""
        self.closing = True
        loop = asyncio.get_running_loop()
        if self._listener:
            self._listener.close()
        deadline = loop.time() + drain_seconds
        for connection in list(self.connections):
            connection.close_if_idle()
        while self.connections and loop.time() < deadline:
            await asyncio.sleep(0.02)
        tasks = [task for one in list(self.connections) if (task := one.cut())]
        if tasks:
            # Cancelled requests still write down what they used.
            await asyncio.wait(tasks, timeout=1.0)
        if self._ticker:
            self._ticker.cancel()

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self.date_line = b"date: %b\r\n" % formatdate(usegmt=True).encode()
        self._ticker = loop.call_later(TICK_SECONDS, self._tick)
        now = loop.time()
        for connection in list(self.connections):
            connection.check_age(now)


class Connection(asyncio.Protocol):
    """One client connection: parses requests in turn and writes their answers."""

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self.closed = self.paused = False
        self.producer: Producer | None = None
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._queue: deque[tuple[HttpRequest, bool, bool]] = deque()
        self._failure: Refused | None = None
        self._discarding = False
        self._active_at = self._loop.time()
        self._quiet_bytes = 0
        self._held_bytes = 0
        self._keep_alive = True
        self._chunked = True
        self._is_head = False
        self._reading = True
        self._continue_due = False
        self.answered = False
        """Bytes of an answer to the current request have been written."""
        self.on_message_begin()
        self._receiving = False

    # Transport callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        if len(self.server.connections) >= self.server.limits.connections:
            self.closed = True
            self.transport.abort()
            return
        self.server.connections.add(self)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        del self._parser  # It holds methods of this connection: a ring.
        self.server.connections.discard(self)
        self._queue.clear()
        self._release(self._held_bytes)
        if self._task:
            self._task.cancel()

    def pause_writing(self) -> None:
        self.paused = True
        if self.producer:
            self.producer.pause_reading()

    def resume_writing(self) -> None:
        self.paused = False
        if self.producer:
            self.producer.resume_reading()
        if not self._task and self._keep_alive and not self.closed:
            self._go_on()

    def data_received(self, data: bytes) -> None:
        if self._discarding or self.closed:
            return
        self._active_at = self._loop.time()
        self._quiet_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._failure = self._failure or self._refused(400, _UPGRADE)
        except httptools.HttpParserError as error:
            self._failure = self._refused(400, f"The request is not HTTP/1.1: {error}.")
        if self._quiet_bytes > (limit := self.server.limits.header_bytes):
            # The parser itself would collect header and trailer bytes without end.
            self._failure = self._refused(431, f"Header fields of at most {limit} bytes are read.")
        if self._failure:
            self._refuse(*self._failure)
        elif self._queue:
            # Pipelined requests wait; reading more would buffer without bound.
            self._reading = False
            self.transport.pause_reading()

    # Parser callbacks, called from C inside feed_data.

    def on_message_begin(self) -> None:
        self._receiving = True
        self._begun_at = self._loop.time()
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._headers_done = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers come after the decisions that headers are for, so they are left out.
        if not self._headers_done:
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._headers_done = True
        self._quiet_bytes = 0
        declared = self._headers.get(b"content-length", b"0")
        size = int(declared) if declared.isdigit() else 0
        self._failure = self.server.limits.refusal_at_gate(self._headers, size)
        if self._failure:
            return
        if size > self.server.limits.body_bytes():
            self._failure = self._too_long()
        elif self._parser.should_upgrade():
            self._failure = self._refused(400, _UPGRADE)
        elif self._headers.get(b"expect", b"").lower() == b"100-continue":
            self._continue_due = self._parser.get_http_version() != "1.0"
            if not self._task:
                self._write_continue()

    def _write_continue(self) -> None:
        """Ask for the body. While an answer is being written, that has to wait for its end."""
        if self._continue_due:
            self._continue_due = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._quiet_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes > self.server.limits.body_bytes():
            self._failure = self._too_long()
            self._body.clear()
        elif self.server.held_bytes + len(body) > self.server.limits.held_bytes:
            self._failure = self._refused(503, "All that the server may hold is taken.")
        elif not self._failure:
            self._body.append(body)
            self._held_bytes += len(body)
            self.server.held_bytes += len(body)

    def _release(self, size: int) -> None:
        # A connection that was cut has given everything back before its request ends.
        size = min(size, self._held_bytes)
        self._held_bytes -= size
        self.server.held_bytes -= size

    def on_message_complete(self) -> None:
        self._receiving = self._continue_due = False
        self._quiet_bytes = 0
        if self._failure or self.transport.is_closing():
            return
        request = request_of(self._parser.get_method(), self._url, self._headers, self._body)
        chunked = self._parser.get_http_version() != "1.0"
        self._queue.append((request, self._parser.should_keep_alive(), chunked))
        if not self._task and not self.paused:
            self._next()

    # Requests in turn.

    def _next(self) -> None:
        request, keep_alive, chunked = self._queue.popleft()
        self._keep_alive = keep_alive and not self.server.closing
        self._chunked = chunked
        self._is_head = request.method == "HEAD"
        self.answered = False
        # Of many in a row each would begin inside the one before.
        at_once = self.server.limits.begins_at_once and not self._queue
        self._task = (eager.run if at_once else self._loop.create_task)(self._run(request))

    async def _run(self, request: HttpRequest) -> None:
        try:
            await self.server.handler(request, self)
        except asyncio.CancelledError:
            if not self.closed:
                self.abort()
            return
        except Exception:
            logger.exception("A request of %s %s failed.", request.method, request.path)
            self._broken()
        finally:
            self._task = None
            self.producer = None
            self._active_at = self._loop.time()
        if self.closed:
            return
        self._release(len(request.body))
        if self._keep_alive:
            self._go_on()
        else:
            self.transport.close()

    def _go_on(self) -> None:
        """Take the next request, unless answers to earlier ones wait for the client to read."""
        if self.paused:
            return
        if self._queue:
            self._next()
            return
        self._write_continue()
        if not self._reading:
            self._reading = True
            self.transport.resume_reading()

    def _broken(self) -> None:
        self._keep_alive = False
        if self.answered:
            # Half an answer must not look like a whole one.
            self.abort()
        else:
            self.respond(*self._refused(500, "The router failed on this request."))

    def _refused(self, status: int, message: str) -> Refused:
        return status, self.server.error_body(status, message)

    def _too_long(self) -> Refused:
        limit = self.server.limits.body_bytes()
        return self._refused(413, f"The body is too long; at most {limit} bytes are read.")

    def _refuse(self, status: int, body: bytes) -> None:
        """Answer, then swallow for a moment what the client still sends, so that it reads it."""
        self._discarding = True
        self._queue.clear()
        self._release(self._held_bytes)
        if self._task:
            self.abort()
            return
        self._keep_alive = False
        self.respond(status, body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._loop.call_later(LINGER_SECONDS, self.transport.close)

    # Answers.

    def respond(
        self,
        status: int,
        body: bytes,
        *,
        content_type: bytes = b"application/json",
        headers: bytes = b"",
    ) -> None:
        """Write a whole answer. `headers` are further lines, each ended by CRLF.

        The answer to HEAD has no body: the client would take it for the next answer.
        """
        if self.closed:
            return
        self.answered = True
        head = b"%bcontent-type: %b\r\ncontent-length: %d\r\n%b%b\r\n" % (
            status_line(status),
            content_type,
            len(body),
            headers,
            self._common(),
        )
        self.transport.write(head if self._is_head else head + body)

    def open_stream(self, status: int, *, content_type: bytes, headers: bytes = b"") -> None:
        """Begin an answer of unknown length; HTTP/1.0 clients get it ended by closing."""
        self.answered = True
        if self._chunked:
            framing = b"transfer-encoding: chunked\r\n"
        else:
            framing, self._keep_alive = b"", False
        self.transport.write(
            b"%bcontent-type: %b\r\ncache-control: no-cache\r\n%b%b%b\r\n"
            % (status_line(status), content_type, framing, headers, self._common())
        )

    def send(self, data: bytes) -> None:
        """Write a part of a stream; an empty part is nothing."""
        if self.closed or not data:
            return
        if self._chunked:
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            self.transport.write(data)

    def close_stream(self) -> None:
        """End a stream as a whole answer."""
        if self._chunked and not self.closed:
            self.transport.write(b"0\r\n\r\n")

    def abort(self) -> None:
        """Cut the connection; the client sees an unfinished answer."""
        self._keep_alive = False
        self.transport.abort()

    def cut(self) -> asyncio.Task[None] | None:
        """Abort at the end of the server; returns the task of a request that was running."""
        self.abort()
        return self._task

    def _common(self) -> bytes:
        date = self.server.date_line
        return date if self._keep_alive else date + b"connection: close\r\n"

    # Ages, looked at by the server's sweep.

    def close_if_idle(self) -> None:
        """Close at once if no request is running, else after its answer."""
        self._keep_alive = False
        if not self._task and not self._discarding:
            self.transport.close()

    def check_age(self, now: float) -> None:
        """End a connection that waits too long for its next or for its unfinished request."""
        if self._task:
            return
        limits = self.server.limits
        if self.transport.get_write_buffer_size():
            if now - self._active_at > limits.flush_seconds:
                self.abort()
        elif self._discarding:
            return
        elif self._receiving and now - self._begun_at > limits.request_seconds:
            self._refuse(*self._refused(408, "The request did not arrive in time."))
        elif not self._receiving and now - self._active_at > limits.idle_seconds:
            self.transport.close()
