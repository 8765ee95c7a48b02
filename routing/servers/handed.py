"""An HTTP server without a port: its connections are handed to it over a socket."""

import asyncio
import contextlib
import logging
import socket

from routing.servers.http import Connection, HttpServer

logger = logging.getLogger(__name__)

TAKEN_PER_TURN = 64


class HandedServer(HttpServer):
    """Takes file descriptors of accepted connections from a datagram socket."""

    taken = 0
    """Connections taken since the start."""
    _source: socket.socket | None = None

    def start_handed(self, source: socket.socket) -> None:
        """Take connections from here on."""
        source.settimeout(0)
        self._source = source
        self._opening: set[asyncio.Task[None]] = set()
        asyncio.get_running_loop().add_reader(source.fileno(), self._take)
        self._tick()

    def _take(self) -> None:
        if self._source is None:
            return
        for _ in range(TAKEN_PER_TURN):
            try:
                _, descriptors, _, _ = socket.recv_fds(self._source, 1, 1)
            except BlockingIOError:
                return
            except OSError as error:
                logger.error("No connection can be taken: %s", error)  # noqa: TRY400 - the sentence is the whole story
                return
            if not descriptors:
                # The supervisor's end is closed.
                self.stop_taking()
                return
            for descriptor in descriptors:
                self.taken += 1
                self._open(socket.socket(fileno=descriptor))

    def _open(self, accepted: socket.socket) -> None:
        accepted.settimeout(0)
        task = asyncio.get_running_loop().create_task(self._serve(accepted))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _serve(self, accepted: socket.socket) -> None:
        try:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: Connection(self), accepted)
        except OSError:
            # The client left meanwhile.
            accepted.close()

    def stop_taking(self) -> None:
        """Leave further connections to others."""
        source, self._source = self._source, None
        if source:
            with contextlib.suppress(ValueError, OSError):
                asyncio.get_running_loop().remove_reader(source.fileno())
            source.close()

    async def stop(self, *, drain_seconds: float) -> None:
        """As of every server; what is already handed over is still served."""
        self._take()
        self.stop_taking()
        if self._opening:
            await asyncio.wait(self._opening, timeout=1.0)
        await super().stop(drain_seconds=drain_seconds)
