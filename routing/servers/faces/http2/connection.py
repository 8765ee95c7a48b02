"""One connection of HTTP/2, as a server has it: frames in, streams of gRPC, frames out.

What a peer can make us keep or do is bounded: streams at once, a header block, a window per stream
and connection, what waits to be sent, frames that bring no messages, the time until it begins.
What it sends is taken as it comes, since every reader here is fast.
"""

import asyncio
from typing import Protocol, cast

from routing.servers.faces.http2 import frames, streams
from routing.servers.faces.http2.frames import Code, ConnectionBrokenError, Setting
from routing.servers.faces.http2.headers import HEADER_BYTES, HeaderBlocks, Opening
from routing.servers.faces.http2.outbox import Outbox
from routing.servers.faces.http2.patience import Patience
from routing.servers.faces.http2.streams import Handler, RpcStream
from routing.servers.faces.http2.tls import PROTOCOL

STREAM_WINDOW = 1024 * 1024
CONNECTION_WINDOW = 16 * 1024 * 1024
SMALL_BYTES = 64
"""A frame of DATA with less than this, that ends no message, brings nothing."""
BYTES_PER_COST = 64
"""Of a header block: decoding takes its time."""
STREAMS_PER_COST = 64
"""Whose window a SETTINGS frame changes."""
LOOK_SECONDS = 10.0
"""How often a connection is looked over; by the first time its peer must have said that it speaks
HTTP/2."""
STALL_SECONDS = 60.0
"""Until a stream's first message is there, and until a peer takes more of an answer."""
LINGER_SECONDS = 5.0
"""For the last bytes of a connection that is given up."""


class Owner(Protocol):
    """The server of a connection."""

    most_streams: int
    """At once on one connection."""

    def open(self, stream: RpcStream, path: str) -> Handler | None:
        """The handler of a method by its path; `None` when there is no such method."""

    def has_room(self) -> bool:
        """Whether all connections together may have one stream more."""

    def came(self, connection: "Connection", transport: asyncio.Transport) -> bool:
        """Take a connection; False when there are too many."""

    def went(self, connection: "Connection") -> None:
        """A connection is gone."""

    def keep(self, more: int) -> None:
        """So many bytes more are kept for all connections together, or fewer."""

    def complain(self, why: str) -> None:
        """A peer broke the rules."""


class Connection(asyncio.Protocol):
    """See the module."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        """Seconds of a clock that only goes forward."""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._buffer = b""
        self._is_greeted = self._is_leaving = self._is_broken = False
        self._blocks = HeaderBlocks()
        self._patience = Patience(self.now)
        self.streams: dict[int, RpcStream] = {}
        self._last = 0
        self._stream_window = frames.DEFAULT_WINDOW
        self.frame_bytes = frames.DEFAULT_FRAME_BYTES
        self._unread = 0
        self.kept_bytes = 0
        """Of messages that are not whole, or not sent."""
        self.heard_at = self.now()
        """When its peer last said something."""
        self._outbox = Outbox()
        self.room, self.write, self.block = (
            self._outbox.room,
            self._outbox.write,
            self._outbox.block,
        )

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._owner.came(self, self._transport) or not _speaks(transport):
            self._transport.abort()
            return
        self._outbox.open(self._transport)
        self._timer = self._loop.call_later(LOOK_SECONDS, self._look_over)
        self.write(
            frames.settings(
                {
                    Setting.MAX_CONCURRENT_STREAMS: self._owner.most_streams,
                    Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
                    Setting.MAX_HEADER_LIST_SIZE: HEADER_BYTES,
                }
            )
            + frames.window_update(0, CONNECTION_WINDOW - frames.DEFAULT_WINDOW)
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer:
            self._timer.cancel()
        self._outbox.close()
        self._cut_all()
        self._owner.went(self)

    def pause_writing(self) -> None:
        self._outbox.pause()

    def resume_writing(self) -> None:
        self._outbox.resume()

    def data_received(self, data: bytes) -> None:
        if self._is_broken:
            return
        self.heard_at = self.now()
        self._outbox.is_corked = True
        try:
            self._read(self._buffer + data if self._buffer else data)
        except ConnectionBrokenError as error:
            self._break(error)
        finally:
            self._outbox.is_corked = False
            self._outbox.flush()

    # Frames in.

    def _read(self, data: bytes) -> None:
        at, end = 0, len(data)
        if not self._is_greeted:
            if not data.startswith(frames.PREFACE[:end]):
                raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "no preface of HTTP/2")
            if end < len(frames.PREFACE):
                self._buffer = data
                return
            self._is_greeted, at = True, len(frames.PREFACE)
        while end - at >= frames.HEAD_BYTES:
            size = int.from_bytes(data[at : at + 3], "big")
            if size > frames.DEFAULT_FRAME_BYTES:
                raise ConnectionBrokenError(Code.FRAME_SIZE_ERROR, "a frame too large")
            stop = at + frames.HEAD_BYTES + size
            if stop > end:
                break
            number = int.from_bytes(data[at + 5 : at + 9], "big") & 0x7FFFFFFF
            self._frame(data[at + 3], data[at + 4], number, data[at + frames.HEAD_BYTES : stop])
            at = stop
        self._buffer = data[at:]

    def _frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._blocks.is_open and kind != frames.CONTINUATION:
            raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "a header block was not finished")
        if kind == frames.DATA:
            self._data(flags, number, payload)
        elif kind == frames.HEADERS:
            self._opened(self._blocks.begin(flags, number, payload))
        elif kind == frames.CONTINUATION:
            self._opened(self._blocks.go_on(flags, number, payload))
        else:
            self._patience.spend()
            name = _OTHERS.get(kind)
            if name is not None:
                getattr(self, name)(flags, number, payload)

    def _data(self, flags: int, number: int, payload: bytes) -> None:
        self._account(len(payload))
        stream = self.streams.get(number)
        if stream is None or stream.is_half_closed:
            self._check_known(number)
            self._patience.spend()
            return
        content = frames.unpadded(flags, payload)
        stream.unread += len(payload)
        if stream.unread > STREAM_WINDOW:
            raise ConnectionBrokenError(Code.FLOW_CONTROL_ERROR, "more than the stream's window")
        is_last = bool(flags & frames.END_STREAM)
        self._take(stream, content, is_last=is_last)
        if is_last:
            stream.half_closed()
        elif stream.unread >= STREAM_WINDOW // 2:
            self.write(frames.window_update(number, stream.unread))
            stream.unread = 0

    def _account(self, size: int) -> None:
        """Bytes of DATA came: the connection's window is widened in time."""
        self._unread += size
        if self._unread > CONNECTION_WINDOW:
            raise ConnectionBrokenError(Code.FLOW_CONTROL_ERROR, "more than the window")
        if self._unread >= CONNECTION_WINDOW // 2:
            self.write(frames.window_update(0, self._unread))
            self._unread = 0

    def _take(self, stream: RpcStream, content: bytes, *, is_last: bool) -> None:
        messages = stream.received(content) if content else 0
        if messages:
            self._patience.earn(messages)
        elif len(content) < SMALL_BYTES and not is_last:
            self._patience.spend()

    def _opened(self, opening: Opening | None) -> None:
        """A header block has come, if it is whole."""
        if opening is None:
            return
        number, flags, path, size = opening
        self._patience.spend(1 + size // BYTES_PER_COST)
        stream = self.streams.get(number)
        if stream is not None:
            # Trailers, of which gRPC's clients have none.
            if flags & frames.END_STREAM and not stream.is_half_closed:
                stream.half_closed()
            return
        if number % 2 == 0:
            raise ConnectionBrokenError(Code.PROTOCOL_ERROR, f"a client opens no stream {number}")
        if number <= self._last:
            # Of a stream that was ended from here.
            return
        self._last = number
        if len(self.streams) >= self._owner.most_streams or self._is_leaving:
            self.write(frames.reset(number, Code.REFUSED_STREAM))
            return
        stream = self.streams[number] = RpcStream(number, self, window=self._stream_window)
        self._begin(stream, path)
        if flags & frames.END_STREAM and number in self.streams:
            stream.half_closed()

    def _begin(self, stream: RpcStream, path: str) -> None:
        if not self._owner.has_room():
            stream.end(streams.RESOURCE_EXHAUSTED, "All streams of this picker are in use.")
            return
        handler = self._owner.open(stream, path)
        if handler is None:
            stream.end(streams.UNIMPLEMENTED, f"There is no method {path[:200]}.")
        else:
            stream.handler = handler

    def _check_known(self, number: int) -> None:
        if number == 0 or number > self._last:
            raise ConnectionBrokenError(Code.PROTOCOL_ERROR, f"stream {number} was never opened")

    def _reset(self, flags: int, number: int, payload: bytes) -> None:
        del flags
        _check_size(payload, 4, "RST_STREAM")
        self._check_known(number)
        self._cut(number)

    def _settings(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "SETTINGS of a stream")
        if flags & frames.ACK:
            return
        # Of a parameter that is told again and again in one frame the last counts.
        told = dict(frames.read_settings(payload))
        self.frame_bytes = told.get(Setting.MAX_FRAME_SIZE, self.frame_bytes)
        self.write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        window = told.get(Setting.INITIAL_WINDOW_SIZE, self._stream_window)
        more, self._stream_window = window - self._stream_window, window
        if more:
            self._patience.spend(len(self.streams) // STREAMS_PER_COST)
            for stream in list(self.streams.values()):
                stream.window = _widened(stream.window, more)
                stream.pump()

    def _ping(self, flags: int, number: int, payload: bytes) -> None:
        _check_size(payload, 8, "PING")
        if number:
            raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "PING of a stream")
        if not flags & frames.ACK:
            self.write(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _window_update(self, flags: int, number: int, payload: bytes) -> None:
        del flags
        _check_size(payload, 4, "WINDOW_UPDATE")
        amount = int.from_bytes(payload, "big") & frames.MOST_WINDOW
        if amount == 0:
            raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "a window widened by nothing")
        if number == 0:
            self._outbox.window = _widened(self._outbox.window, amount)
            self._outbox.pump()
            return
        self._check_known(number)
        stream = self.streams.get(number)
        if stream is not None:
            stream.window = _widened(stream.window, amount)
            stream.pump()

    def _never(self, flags: int, number: int, payload: bytes) -> None:
        raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "a client does not push")

    # What streams ask for, beside `now`, `room`, `write` and `block`.

    def keep(self, more: int) -> None:
        """So many bytes more are kept, or fewer."""
        self.kept_bytes += more
        self._owner.keep(more)

    def forget(self, stream: RpcStream) -> None:
        """The stream is over in both directions."""
        self.streams.pop(stream.number, None)
        self._outbox.drop(stream.number)
        if self._is_leaving and not self.streams:
            self._close()

    # The end.

    def leave(self) -> None:
        """Take no more streams, and close when the last one has ended."""
        if self._transport is None or self._is_leaving:
            return
        self._is_leaving = True
        self.write(frames.goaway(self._last, Code.NO_ERROR))
        if not self.streams:
            self._close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport:
            self._transport.abort()

    def _look_over(self) -> None:
        """End what its peer does not go on with."""
        self._timer = self._loop.call_later(LOOK_SECONDS, self._look_over)
        now = self.now()
        if not self._is_greeted:
            self.abort()
        for number, stream in list(self.streams.items()):
            since = stream.waits_since
            if since is not None and now - since >= STALL_SECONDS:
                self._cut(number)
                self.write(frames.reset(number, Code.CANCEL))

    def _cut(self, number: int) -> None:
        stream = self.streams.get(number)
        if stream is not None:
            self.forget(stream)
            stream.cut()

    def _cut_all(self) -> None:
        gone, self.streams = self.streams, {}
        for stream in gone.values():
            stream.cut()

    def _break(self, error: ConnectionBrokenError) -> None:
        self._owner.complain(str(error))
        self._is_broken, self._buffer = True, b""
        self._cut_all()
        self.write(frames.goaway(self._last, error.code, str(error)))
        self._close()

    def _close(self) -> None:
        """What was written goes out, as long as the peer takes it in time."""
        if self._transport:
            self._outbox.flush()
            self._transport.close()
            if self._timer:
                self._timer.cancel()
            self._timer = self._loop.call_later(LINGER_SECONDS, self.abort)


_OTHERS = {
    frames.RST_STREAM: "_reset",
    frames.SETTINGS: "_settings",
    frames.PUSH_PROMISE: "_never",
    frames.PING: "_ping",
    frames.WINDOW_UPDATE: "_window_update",
}
"""Method by kind of frame; PRIORITY, GOAWAY and unknown ones say nothing to a server."""


def _speaks(transport: asyncio.BaseTransport) -> bool:
    """Whether the peer agreed to HTTP/2 in its handshake, where there was one."""
    secured = transport.get_extra_info("ssl_object")
    return secured is None or secured.selected_alpn_protocol() == PROTOCOL


def _check_size(payload: bytes, size: int, name: str) -> None:
    if len(payload) != size:
        raise ConnectionBrokenError(Code.FRAME_SIZE_ERROR, f"{name} of a broken size")


def _widened(window: int, amount: int) -> int:
    if window + amount > frames.MOST_WINDOW:
        raise ConnectionBrokenError(Code.FLOW_CONTROL_ERROR, "a window too large")
    return window + amount
