"""ZeroMQ sockets on the event loop, read in short turns so that requests are never kept waiting."""

import asyncio
from collections.abc import Callable

import zmq

from routing.servers import clock

TURN_SECONDS = 0.001
"""Longest time that messages are taken in one turn of the loop."""
RECEIVE_HIGH_WATER_MARK = 2_000
"""Messages that wait in a socket; what does not fit is lost, which its number tells."""
MAX_MESSAGE_BYTES = 17 * 1024 * 1024

Frames = list[bytes]


class EventSocket:
    """One socket; every message goes to `take`, which returns false when it wants no more now."""

    def __init__(
        self,
        context: "zmq.Context[zmq.Socket[bytes]]",
        kind: int,
        take: Callable[[Frames], bool],
        *,
        on_connect: Callable[[], None] | None = None,
    ) -> None:
        self._socket = context.socket(kind)
        self._socket.linger = 0
        self._socket.set_hwm(RECEIVE_HIGH_WATER_MARK)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        self._socket.setsockopt(zmq.RECONNECT_IVL, 100)
        self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2_000)
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._again: asyncio.Handle | None = None
        self._is_open = True
        self._is_paused = False
        self._loop.add_reader(self._socket.FD, self._schedule)
        self._on_connect = on_connect
        self._monitor: zmq.Socket[bytes] | None = None
        if on_connect:
            self._monitor = self._socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            self._loop.add_reader(self._monitor.FD, self._connected)

    def connect(self, address: str) -> None:
        """Connect now or whenever somebody is there. Raises zmq.ZMQError for a bad address."""
        self._socket.connect(address)
        self._schedule()
        # The descriptor fires only after its events were looked at once.
        self._loop.call_soon(self._connected)

    def bind(self, address: str) -> None:
        """Listen. Raises zmq.ZMQError when the port is taken."""
        self._socket.bind(address)
        self._schedule()

    def subscribe(self, topic: str) -> None:
        """Messages whose first frame begins so; "" is all."""
        self._socket.setsockopt(zmq.SUBSCRIBE, topic.encode())

    def send(self, frames: Frames) -> bool:
        """Send, or give up at once when there is no room."""
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            return False
        self._schedule()
        return True

    def resume(self) -> None:
        """Take messages again after `take` said no."""
        if self._is_open and self._is_paused:
            self._is_paused = False
            self._loop.add_reader(self._socket.FD, self._schedule)
            self._schedule()

    def _pause(self) -> None:
        # A descriptor that nobody reads would wake the loop without end.
        self._is_paused = True
        self._loop.remove_reader(self._socket.FD)

    def close(self) -> None:
        """End; what waits in the socket is lost."""
        if self._is_open:
            self._is_open, self._is_paused = False, True
            self._loop.remove_reader(self._socket.FD)
            if self._again:
                self._again.cancel()
            if self._monitor:
                self._loop.remove_reader(self._monitor.FD)
                self._socket.disable_monitor()
                self._monitor.close(linger=0)
            self._socket.close()

    def _schedule(self) -> None:
        if self._again is None and not self._is_paused:
            self._again = self._loop.call_soon(self._turn)

    def _connected(self) -> None:
        """The descriptor fires once per change, so all that waits is read."""
        is_new = False
        while self._is_open and self._monitor and int(self._monitor.EVENTS) & zmq.POLLIN:
            self._monitor.recv_multipart(zmq.NOBLOCK)
            is_new = True
        if is_new and self._on_connect and self._is_open:
            self._on_connect()

    def _turn(self) -> None:
        self._again = None
        if not self._is_open:
            return
        until = clock.monotonic() + TURN_SECONDS
        while clock.monotonic() < until:
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if not self._take(frames) and self._is_open:
                self._pause()
            if self._is_paused or not self._is_open:
                return
        self._schedule()
