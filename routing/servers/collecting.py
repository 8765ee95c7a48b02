"""Ports that this router binds for engines that connect with their cache events.

Only one process can have a port. Where a router has several, the first binds and the supervisor
passes what comes on to the others (`Collectors.hear`); what is lost on the way, or while the first
is being replaced, shows in the batches' numbers like any other loss.
"""

from collections.abc import Callable

import zmq

from routing.servers.event_socket import EventSocket, Frames
from routing.servers.event_stream import EventStream


class Collectors:
    """Of one process, by address."""

    def __init__(self) -> None:
        self.binds = True
        """False in a process that hears of events from another."""
        self.pass_on: Callable[[str, Frames], None] = _nobody
        """Called with each message of a port that is bound here."""
        self._open: dict[str, _Collector] = {}

    def add(self, stream: EventStream, context: "zmq.Context[zmq.Socket[bytes]]") -> None:
        """Put a stream behind its address. Raises zmq.ZMQError while the port is taken."""
        address = stream.source.address
        collector = self._open.get(address)
        if collector is None:
            collector = _Collector(self, address)
            if self.binds:
                collector.bind(context)
            self._open[address] = collector
        collector.streams.append(stream)

    def remove(self, stream: EventStream) -> None:
        """The opposite of `add`, also for a stream that was not added; the last frees the port."""
        collector = self._open.get(stream.source.address)
        if collector is not None and stream in collector.streams:
            collector.streams.remove(stream)
            if not collector.streams:
                self._open.pop(stream.source.address).close()

    def hear(self, address: str, frames: Frames) -> None:
        """A message that came to the port of another process."""
        collector = self._open.get(address)
        if collector is not None:
            collector.take(frames)

    def close(self) -> None:
        """Free all ports."""
        for collector in self._open.values():
            collector.close()
        self._open.clear()


class _Collector:
    """One address; topics tell who sends."""

    def __init__(self, owner: Collectors, address: str) -> None:
        self.streams: list[EventStream] = []
        self._owner, self._address = owner, address
        self._socket: EventSocket | None = None

    def bind(self, context: "zmq.Context[zmq.Socket[bytes]]") -> None:
        """Listen. Raises zmq.ZMQError when the port is taken."""
        self._socket = EventSocket(context, zmq.SUB, self._arrived)
        self._socket.subscribe("")
        try:
            self._socket.bind(self._address)
        except zmq.ZMQError:
            self._socket.close()
            raise

    def close(self) -> None:
        """Free the port."""
        if self._socket:
            self._socket.close()

    def _arrived(self, frames: Frames) -> bool:
        self._owner.pass_on(self._address, frames)
        self.take(frames)
        # A port shared with others is not held up by one of them.
        return True

    def take(self, frames: Frames) -> None:
        """Give a message to the stream of its topic."""
        topic = frames[0].decode("utf-8", "replace")
        for stream in self.streams:
            if topic.startswith(stream.source.topic):
                stream.take(frames)
                break


def _nobody(address: str, frames: Frames) -> None:
    """No other process listens."""
