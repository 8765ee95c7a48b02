"""Streams of gRPC on a connection: messages in, messages out, a status at the end."""

import logging
from collections import deque
from typing import Protocol
from urllib.parse import quote

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.frames import Code

logger = logging.getLogger(__name__)

OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED = 0, 3, 8, 9, 12
INTERNAL = 13
"""Status codes of gRPC that are given here."""
MESSAGE_BYTES = 64 * 1024 * 1024
PREFIX_BYTES = 5
"""Before each message: a flag for compression and four bytes of length."""
ENTRY_BYTES = 64
"""What a message costs to keep, beside its bytes."""

_BEGIN = b"\x88" + frames.literal(b"content-type", b"application/grpc")
"""`:status: 200` is entry 8 of the static table."""


class Handler(Protocol):
    """What a method does with one stream."""

    def taken(self, raw: bytes) -> None:
        """A message came."""

    def closed(self) -> None:
        """No more messages will come; the stream is still open for answers unless it was reset."""


class Link(Protocol):
    """What a stream needs of its connection."""

    frame_bytes: int
    """Most payload of a frame that the peer takes."""

    def now(self) -> float:
        """Seconds of a clock that only goes forward."""

    def room(self) -> int:
        """Bytes that may be sent on all streams together."""

    def write(self, data: bytes, *, flow: int = 0) -> None:
        """Send soon; `flow` bytes of it count against the window."""

    def block(self, stream: "RpcStream") -> None:
        """Call `pump` of the stream when there is room again."""

    def keep(self, more: int) -> None:
        """So many bytes more are kept, or fewer."""

    def forget(self, stream: "RpcStream") -> None:
        """The stream is over in both directions."""


class RpcStream:
    """One call of a method. It is what a handler writes to."""

    def __init__(self, number: int, link: Link, *, window: int) -> None:
        self.number = number
        self.handler: Handler | None = None
        self.window = window
        """Bytes that the peer takes on this stream."""
        self.is_half_closed = False
        """The peer sends nothing more."""
        self.unread = 0
        """Bytes that came since the peer was last told that there is room."""
        self.waits_since: float | None = link.now()
        """Since when the peer has to send its first message, or to take something."""
        self._link = link
        self._held = bytearray()
        """The begin of a message."""
        self._needed = PREFIX_BYTES
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = self._sent = self._kept = 0
        self._trailers = b""
        self._is_begun = self._is_ended = False

    # From the peer.

    def received(self, payload: bytes) -> int:
        """A piece of the peer's messages; returns how many are whole by it."""
        if self._is_ended:
            return 0
        data = payload
        if self._held:
            self._held += payload
            if len(self._held) < self._needed:
                self._count()
                return 0
            data, self._held = bytes(self._held), bytearray()
        taken, at = self._messages(data)
        if not self._is_ended and at < len(data):
            self._held += data[at:]
        self._count()
        return taken

    def _messages(self, data: bytes) -> tuple[int, int]:
        """Take what is whole; returns the number of messages and where the rest begins."""
        taken = at = 0
        while not self._is_ended:
            self._needed = PREFIX_BYTES
            if len(data) - at < PREFIX_BYTES or not self._looks_well(data, at):
                break
            if len(data) - at < self._needed:
                break
            begin, at = at + PREFIX_BYTES, at + self._needed
            taken += 1
            self.waits_since = None
            self._tell(data[begin:at])
        return taken, at

    def _looks_well(self, data: bytes, at: int) -> bool:
        """See how long the message is that begins here; ends the stream if it is not taken."""
        size = int.from_bytes(data[at + 1 : at + PREFIX_BYTES], "big")
        if data[at]:
            self.end(UNIMPLEMENTED, "Compressed messages are not read.")
        elif size > MESSAGE_BYTES:
            self.end(RESOURCE_EXHAUSTED, f"A message may have {MESSAGE_BYTES} bytes.")
        self._needed = PREFIX_BYTES + size
        return not self._is_ended

    def _tell(self, message: bytes) -> None:
        """A handler that fails takes no other stream with it."""
        if self.handler is None:
            return
        try:
            self.handler.taken(message)
        except Exception:
            logger.exception("The handler of a stream failed.")
            handler, self.handler = self.handler, None
            self.end(INTERNAL, "The picker failed.")
            _close(handler)

    def half_closed(self) -> None:
        """The peer has sent its last."""
        self.is_half_closed = True
        _close(self.handler)

    def cut(self) -> None:
        """The stream or its connection is gone: nothing can be sent any more."""
        self._is_ended = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self._held.clear()
        self._count()
        handler, self.handler = self.handler, None
        _close(handler)

    def _count(self) -> None:
        kept = len(self._held) + self._unsent_bytes
        if kept != self._kept:
            more, self._kept = kept - self._kept, kept
            self._link.keep(more)

    # To the peer.

    def send(self, message: bytes) -> None:
        """Write a message; after the end it does nothing."""
        if self._is_ended:
            return
        if not self._is_begun:
            self._is_begun = True
            self._link.write(frames.frame(frames.HEADERS, frames.END_HEADERS, self.number, _BEGIN))
        framed = b"\0%b%b" % (len(message).to_bytes(4, "big"), message)
        if self._unsent or not self._fits(len(framed)):
            self._unsent.append(framed)
            self._unsent_bytes += len(framed) + ENTRY_BYTES
            self.pump()
            self._count()
        else:
            self._write(framed)

    def end(self, code: int = OK, message: str = "") -> None:
        """Close the stream with a status of gRPC; again, it does nothing."""
        if self._is_ended:
            return
        self._is_ended = True
        self._held.clear()
        block = frames.literal(b"grpc-status", b"%d" % code)
        if message:
            block += frames.literal(b"grpc-message", quote(message, safe=_PLAIN).encode())
        if not self._is_begun:
            block = _BEGIN + block
        flags = frames.END_HEADERS | frames.END_STREAM
        self._unsent.append(b"")
        self._trailers = frames.frame(frames.HEADERS, flags, self.number, block)
        self.pump()
        self._count()

    def pump(self) -> None:
        """Send what there is room for."""
        while self._unsent:
            piece = self._unsent[0]
            if not piece:
                self._finish()
                return
            left = len(piece) - self._sent
            size = min(left, self.window, self._link.room())
            if size <= 0:
                self._wait()
                return
            self.waits_since = None
            self._write(piece[self._sent : self._sent + size])
            if size < left:
                self._sent += size
            else:
                self._sent = 0
                self._unsent.popleft()
                self._unsent_bytes -= len(piece) + ENTRY_BYTES
                self._count()

    def _wait(self) -> None:
        """For the connection's room; room of its own comes with a frame that names the stream."""
        if self.waits_since is None:
            self.waits_since = self._link.now()
        if self.window > 0:
            self._link.block(self)

    def _fits(self, size: int) -> bool:
        return size <= self.window and size <= self._link.room()

    def _write(self, data: bytes) -> None:
        most, size = self._link.frame_bytes, len(data)
        self.window -= size
        if size <= most:
            self._link.write(frames.frame(frames.DATA, 0, self.number, data), flow=size)
            return
        for at in range(0, size, most):
            piece = data[at : at + most]
            self._link.write(frames.frame(frames.DATA, 0, self.number, piece), flow=len(piece))

    def _finish(self) -> None:
        self._unsent.clear()
        self._link.write(self._trailers)
        if not self.is_half_closed:
            # It need not send the rest.
            self._link.write(frames.reset(self.number, Code.NO_ERROR))
        self.handler = None
        self._count()
        self._link.forget(self)


def _close(handler: Handler | None) -> None:
    """Tell a handler that no more comes; one that fails takes no other with it."""
    if handler is None:
        return
    try:
        handler.closed()
    except Exception:
        logger.exception("The handler of a stream failed at its end.")


_PLAIN = " !\"#$&'()*+,-./:;<=>?@[]^_`{|}~\\"
"""Characters of a status message that are not escaped, besides letters and digits."""
