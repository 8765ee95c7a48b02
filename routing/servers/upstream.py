"""Connections to engines: kept alive, one exchange at a time, raw asyncio.

An exchange writes a request and hands the answer to a receiver as it comes. Time-outs, a connection
that breaks and one that the engine had closed while it was idle are told apart, because a retry, a
breaker and a bill each need another of them.
"""

import asyncio
from collections import deque
from typing import Literal, Protocol, cast

import httptools
import msgspec

from routing.servers.origin import Origin

FailureKind = Literal["connect", "status", "timeout", "stall", "kv_transfer"]
Headers = dict[bytes, bytes]

HEAD_BYTES = 256 * 1024
"""Most bytes that are read of an answer before its headers end."""


class UpstreamError(Exception):
    """An exchange that did not end well; `kind` is the class of failure for a breaker."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class StaleConnectionError(UpstreamError):
    """A kept connection was closed by the engine before it sent a byte: try another one."""


class ClientBlockedError(UpstreamError):
    """The client stopped reading for too long; the engine is innocent."""


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that an exchange waits for each thing."""

    connect: float
    first_byte: float
    stall: float
    """Longest silence after the first byte of the body."""


class Receiver(Protocol):
    """Takes an answer as it comes."""

    def on_head(self, status: int, headers: Headers, source: "UpstreamConnection") -> None:
        """Status and headers are known; `source` can be paused."""

    def on_data(self, data: bytes) -> None:
        """A part of the body, without transfer coding."""

    def on_end(self) -> None:
        """Nothing more comes, well or not; the source serves others from here on."""

    def is_blocked(self) -> bool:
        """Whether the silence is ours: the source is paused for a slow client."""


class UpstreamConnection(asyncio.Protocol):
    """One connection to an engine."""

    def __init__(self, pool: "UpstreamPool", origin: Origin) -> None:
        self.origin = origin
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        # The parser calls this from C for each chunk; a bound append spares a Python frame.
        self.on_body = self._parts.append
        self._done: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._look_at = 0.0
        """When the timer rings; it outlives exchanges, because most end long before it."""
        self._paused = False
        self.idle_since = 0.0
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpResponseParser(self)

    def exchange(
        self, message: bytes, receiver: Receiver, deadlines: Deadlines
    ) -> asyncio.Future[None]:
        """Send a request; the future ends with the answer, or with an UpstreamError."""
        self._receiver = receiver
        self._deadlines = deadlines
        self._status = 0
        self._headers: Headers = {}
        self._complete = self._touched = self._body_begun = self._reusable = False
        self._head_bytes = 0
        self._last_at = self._loop.time()
        self._done = self._loop.create_future()
        self._look(self._last_at + min(deadlines.first_byte, deadlines.stall))
        self.transport.write(message)
        return self._done

    def abandon(self, done: asyncio.Future[None]) -> None:
        """Give an exchange up, unless it has ended and the connection serves another one."""
        if self._done is done:
            self.abort()

    def overflow(self, limit_bytes: int) -> None:
        """End the exchange because its answer is longer than the receiver can hold."""
        self._fail(UpstreamError("status", f"{self.origin} answered over {limit_bytes} bytes."))

    def give_up(self, why: str) -> None:
        """End the exchange as failed, because of what the engine said in its answer."""
        self._fail(UpstreamError("status", f"{self.origin} {why}."))

    def abort(self) -> None:
        """Cut the connection at once, which frees the engine; whoever waits is not told."""
        if self._done:
            self._done = None
            self._receiver.on_end()
        self._stop_timer()
        self.closed = True
        self.transport.abort()

    def pause_reading(self) -> None:
        """Let the engine wait for a slow client."""
        if not self.closed and not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading; the time of the pause was not the engine's silence."""
        self._last_at = self._loop.time()
        if not self.closed and self._paused:
            self._paused = False
            self.transport.resume_reading()

    # Transport callbacks.

    def data_received(self, data: bytes) -> None:
        if self._done is None:
            # An idle connection has nothing to say.
            self.abort()
            return
        self._touched = True
        self._last_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(UpstreamError("status", f"{self.origin} does not speak HTTP: {error}."))
            return
        if not self._status:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._fail(UpstreamError("status", f"{self.origin} sends headers without end."))
            return
        if self._parts:
            self._deliver()
        if self._complete and self._done:
            self._finish(reusable=self._reusable)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        del self._parser  # It holds methods of this connection: a ring.
        self._stop_timer()
        self._pool.forget(self)
        if self._done is None:
            return
        if self._status and self._until_close():
            self._finish(reusable=False)
        elif not self._touched:
            self._fail(StaleConnectionError("connect", f"{self.origin} closed the connection."))
        else:
            self._fail(UpstreamError("status", f"{self.origin} ended in the middle of an answer."))

    # Parser callbacks.

    def on_message_begin(self) -> None:
        if self._complete:
            # The parser passes it on as an error: nobody asked for a second answer.
            raise ValueError("a second answer follows")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self._status = status
            self._receiver.on_head(status, self._headers, self)

    def on_message_complete(self) -> None:
        self._complete = self._status > 0
        # Asked here, because the parser forgets it with the message.
        self._reusable = self._parser.should_keep_alive()

    # Ends.

    def _deliver(self) -> None:
        parts = self._parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._body_begun = True
        self._receiver.on_data(data)

    def _until_close(self) -> bool:
        return b"content-length" not in self._headers and b"chunked" not in self._headers.get(
            b"transfer-encoding", b""
        )

    def _finish(self, *, reusable: bool) -> None:
        done, self._done = self._done, None
        self._receiver.on_end()
        self.resume_reading()
        if reusable and not self.closed:
            self._pool.keep(self)
        else:
            self.closed = True
            self.transport.close()
        if done and not done.done():
            done.set_result(None)

    def _fail(self, error: UpstreamError) -> None:
        done = self._done
        self.abort()
        if done and not done.done():
            done.set_exception(error)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _look(self, at: float) -> None:
        """Look for silence at this time of the loop, or before."""
        if self._timer is None or at < self._look_at:
            self._stop_timer()
            self._look_at = at
            self._timer = self._loop.call_at(at, self._check_silence)

    def _check_silence(self) -> None:
        """Runs seldom; each byte only moves `_last_at`, which is cheaper than a timer per event."""
        self._timer = None
        if self._done is None:
            return
        limit = self._deadlines.stall if self._body_begun else self._deadlines.first_byte
        now = self._loop.time()
        left = self._last_at + limit - now
        if left > 0:
            self._look(now + min(left, self._deadlines.stall))
        elif self._receiver.is_blocked():
            self._fail(ClientBlockedError("stall", "The client stopped reading."))
        elif self._body_begun:
            self._fail(UpstreamError("stall", f"{self.origin} was silent for {limit:g} s."))
        else:
            self._fail(UpstreamError("timeout", f"{self.origin} sent nothing for {limit:g} s."))


class UpstreamPool:
    """Kept connections per origin, newest first, so that surplus ones age and are closed."""

    def __init__(self, *, idle_seconds: float = 4.0, idle_per_origin: int = 256) -> None:
        # vLLM's server closes a connection that was idle for 5 s; stay below.
        self._idle_seconds = idle_seconds
        self._idle_per_origin = idle_per_origin
        self._idle: dict[Origin, deque[UpstreamConnection]] = {}
        self._sweep_at = 0.0

    async def run(
        self, origin: Origin, message: bytes, receiver: Receiver, deadlines: Deadlines
    ) -> None:
        """Send a request and wait until the receiver has the whole answer.

        Raises UpstreamError. When cancelled, the connection is cut, so that the engine stops.
        """
        kept = self._take(origin)
        if kept:
            try:
                await self._exchange(kept, message, receiver, deadlines)
            except StaleConnectionError:
                kept = None
        if not kept:
            connection = await self._connect(origin, deadlines.connect)
            await self._exchange(connection, message, receiver, deadlines)

    def keep(self, connection: UpstreamConnection) -> None:
        """Take a connection back after an answer."""
        connection.idle_since = asyncio.get_running_loop().time()
        kept = self._idle.get(connection.origin)
        if kept is None:
            kept = self._idle[connection.origin] = deque()
        kept.append(connection)
        if len(kept) > self._idle_per_origin:
            kept.popleft().abort()
        if connection.idle_since >= self._sweep_at:
            self._sweep(connection.idle_since)

    def forget(self, connection: UpstreamConnection) -> None:
        """Drop a connection that the engine closed."""
        kept = self._idle.get(connection.origin)
        if kept and connection in kept:
            kept.remove(connection)
            if not kept:
                # Ports of engines come and go.
                del self._idle[connection.origin]

    def close(self) -> None:
        """Close everything that is idle."""
        for kept in self._idle.values():
            while kept:
                kept.pop().abort()

    def _sweep(self, now: float) -> None:
        """Close what nobody needed for long; looked at a few times within that time."""
        self._sweep_at = now + self._idle_seconds / 4
        for kept in self._idle.values():
            while kept and now - kept[0].idle_since > self._idle_seconds:
                kept.popleft().abort()

    def _take(self, origin: Origin) -> UpstreamConnection | None:
        kept = self._idle.get(origin)
        if not kept:
            return None
        connection = kept.pop()
        if asyncio.get_running_loop().time() - connection.idle_since <= self._idle_seconds:
            return connection
        # So are all others: the newest one was on top.
        connection.abort()
        while kept:
            kept.pop().abort()
        return None

    async def _connect(self, origin: Origin, seconds: float) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(
                    lambda: UpstreamConnection(self, origin), origin.host, origin.port
                )
        except TimeoutError as error:
            message = f"{origin} did not accept a connection within {seconds:g} s."
            raise UpstreamError("connect", message) from error
        except OSError as error:
            message = f"{origin} cannot be connected: {error.strerror or error}."
            raise UpstreamError("connect", message) from error
        return connection

    async def _exchange(
        self,
        connection: UpstreamConnection,
        message: bytes,
        receiver: Receiver,
        deadlines: Deadlines,
    ) -> None:
        done = connection.exchange(message, receiver, deadlines)
        try:
            await done
        except asyncio.CancelledError:
            connection.abandon(done)
            raise
        finally:
            # It keeps its error, whose traceback keeps this frame: a ring.
            del done


class Collected:
    """Receiver of a whole answer, bounded in size."""

    def __init__(self, *, limit_bytes: int = 64 * 1024 * 1024) -> None:
        self.status = 0
        self.headers: Headers = {}
        self._limit = limit_bytes
        self._size = 0
        self._parts: list[bytes] = []
        self._source: UpstreamConnection | None = None

    @property
    def body(self) -> bytes:
        """What has come so far."""
        return b"".join(self._parts)

    def on_head(self, status: int, headers: Headers, source: UpstreamConnection) -> None:
        self.status, self.headers, self._source = status, headers, source

    def on_data(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= self._limit:
            self._parts.append(data)
        elif self._source:
            self._source.overflow(self._limit)

    def on_end(self) -> None:
        self._source = None

    def is_blocked(self) -> bool:
        return False
