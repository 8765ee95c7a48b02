"""The load generator's HTTP client: keep-alive connections, little cost per event."""

import asyncio
import contextlib
from time import perf_counter
from typing import Any, cast

import httptools
import orjson

TAIL_BYTES = 2048
"""Only the end of an answer is kept: usage and the end mark are there."""
MAX_IDLE = 512


class NoAnswerError(Exception):
    """The connection failed before the first byte of an answer; the request may be sent again."""


class BrokenAnswerError(Exception):
    """The connection ended inside an answer."""


class Reply:
    """What came back for one request."""

    __slots__ = ("first_at", "last_at", "status", "tail")

    def __init__(self) -> None:
        self.status = 0
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.tail = b""

    def failure(self) -> str | None:
        """Why the answer is not a complete one, or None."""
        if self.status != 200:
            return f"http-{self.status}"
        if b"data: [DONE]" not in self.tail:
            return "error-in-stream" if b'"error"' in self.tail else "incomplete-stream"
        return None

    def usage(self) -> dict[str, Any] | None:
        """The usage of the last event that carried one."""
        for line in reversed(self.tail.split(b"\n")):
            if line.startswith(b"data: {") and b'"usage"' in line:
                usage: dict[str, Any] | None = orjson.loads(line[6:]).get("usage")
                return usage
        return None


class ClientConnection(asyncio.Protocol):
    """One connection; takes one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._reply = Reply()
        self._done: asyncio.Future[Reply] | None = None

    @property
    def usable(self) -> bool:
        """Whether another request can be sent."""
        return (
            self._transport is not None and not self._transport.is_closing() and self._done is None
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket over."""
        # uvloop's transports do not inherit from asyncio's, they only have its methods.
        self._transport = cast("asyncio.Transport", transport)

    async def exchange(self, head: bytes, body: bytes) -> Reply:
        """Send a request and wait for the whole answer.

        Raises NoAnswerError or BrokenAnswerError when the connection ends.
        """
        if self._transport is None:
            raise NoAnswerError("The connection is closed.")
        self._parser = httptools.HttpResponseParser(self)
        self._reply = Reply()
        self._done = self._loop.create_future()
        self._transport.write(head + body)
        try:
            return await self._done
        finally:
            self._done = None

    def close(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._transport = None
        if self._reply.first_at is None and not self._reply.status:
            self._fail(NoAnswerError("The connection ended before the answer."))
        else:
            self._fail(BrokenAnswerError("The connection ended inside the answer."))

    def data_received(self, data: bytes) -> None:
        """Parse; what is not HTTP ends the connection."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail(BrokenAnswerError("The answer is not HTTP."))
            self.close()

    def on_headers_complete(self) -> None:
        """Callback of the parser."""
        self._reply.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Callback of the parser: an event, or a part of one."""
        reply = self._reply
        reply.last_at = perf_counter()
        if reply.first_at is None:
            reply.first_at = reply.last_at
        reply.tail = (reply.tail + body)[-TAIL_BYTES:]

    def on_message_complete(self) -> None:
        """Callback of the parser."""
        if self._reply.status == 100:
            return
        if not self._parser.should_keep_alive() and self._transport is not None:
            self._transport.close()
        if self._done is not None and not self._done.done():
            self._done.set_result(self._reply)

    def _fail(self, error: Exception) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)


class Target:
    """One base URL with its idle connections."""

    def __init__(self, url: str, *, path: str, key: str | None, connect_seconds: float) -> None:
        authority = url.removeprefix("http://")
        host, _, port = authority.rpartition(":")
        self._host, self._port = (host, int(port)) if host else (authority, 80)
        self._connect_seconds = connect_seconds
        self._idle: list[ClientConnection] = []
        bearer = f"authorization: Bearer {key}\r\n" if key else ""
        self._head = (
            f"POST {path} HTTP/1.1\r\nhost: {authority}\r\n{bearer}"
            "content-type: application/json\r\n"
        ).encode()

    async def post(self, body: bytes, *, request_id: str) -> Reply:
        """Send a body and read the answer. Raises NoAnswerError or BrokenAnswerError."""
        head = self._head + b"x-request-id: %b\r\ncontent-length: %d\r\n\r\n" % (
            request_id.encode(),
            len(body),
        )
        idle = self._take_idle()
        if idle is not None:
            # The server may have closed it just now, which says nothing about the server.
            with contextlib.suppress(NoAnswerError):
                return await self._exchange(idle, head, body)
        return await self._exchange(await self._connect(), head, body)

    async def _exchange(self, connection: ClientConnection, head: bytes, body: bytes) -> Reply:
        try:
            reply = await connection.exchange(head, body)
        except asyncio.CancelledError:
            connection.close()
            raise
        if connection.usable and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        return reply

    def close(self) -> None:
        """Close idle connections."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _take_idle(self) -> ClientConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connect(self) -> ClientConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_seconds):
                _, connection = await loop.create_connection(
                    ClientConnection, self._host, self._port
                )
        except (OSError, TimeoutError) as error:
            raise NoAnswerError(f"No connection to {self._host}:{self._port}: {error}.") from error
        return connection
