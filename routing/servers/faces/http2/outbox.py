"""What a connection sends: the peer's window, streams that wait for room, bytes on their way."""

import asyncio
from collections import OrderedDict

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.streams import RpcStream

BURST_BYTES = 1024 * 1024
"""Of messages, written before the transport is asked whether it still takes them."""
UNSENT_BYTES = 8 * 1024 * 1024
"""In the transport: a peer that reads nothing, and still makes us answer, is cut off."""


class Outbox:
    """See the module. Everything that is written between two turns of the loop goes out as one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.window = frames.DEFAULT_WINDOW
        """Bytes that the peer takes on all streams together."""
        self.is_corked = False
        """Whoever corked it calls `flush`."""
        self._blocked: OrderedDict[int, RpcStream] = OrderedDict()
        self._out: list[bytes] = []
        self._burst = 0
        self._is_flush_due = self._is_paused = False

    def open(self, transport: asyncio.Transport) -> None:
        """Bytes can go out."""
        self._transport = transport

    def close(self) -> None:
        """Nothing goes out any more."""
        self._transport = None
        self._out.clear()
        self._blocked.clear()

    def room(self) -> int:
        """Bytes that may be sent now on all streams together."""
        return 0 if self._is_paused else min(self.window, BURST_BYTES - self._burst)

    def write(self, data: bytes, *, flow: int = 0) -> None:
        """Send soon; `flow` bytes of it count against the window."""
        if self._transport is None:
            return
        self.window -= flow
        self._burst += flow
        self._out.append(data)
        if not self.is_corked and not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self.flush)

    def block(self, stream: RpcStream) -> None:
        """Let a stream wait for room, behind those that wait already."""
        self._blocked[stream.number] = stream

    def drop(self, number: int) -> None:
        """A stream waits no more."""
        self._blocked.pop(number, None)

    def pause(self) -> None:
        """The transport takes no more for now."""
        self._is_paused = True

    def resume(self) -> None:
        """It does again."""
        self._is_paused = False
        self.pump()

    def pump(self) -> None:
        """Let streams send that wait for room, in turn, as far as there is some."""
        while self._blocked and self.room() > 0:
            _, stream = self._blocked.popitem(last=False)
            stream.pump()

    def flush(self) -> None:
        """Hand everything to the transport."""
        self._is_flush_due = False
        out, self._out, self._burst = self._out, [], 0
        transport = self._transport
        if transport is None or not out:
            return
        transport.write(out[0] if len(out) == 1 else b"".join(out))
        if transport.get_write_buffer_size() > UNSENT_BYTES:
            transport.abort()
        elif self._blocked:
            self.pump()
