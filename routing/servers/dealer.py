"""Accepts connections and hands each to the serving process that has the fewest.

The kernel's own ways were measured with four processes and kept-alive connections, 20 times each. A
port shared by `SO_REUSEPORT` gave the fullest process 1.3 times its share of 64 connections and 1.6
to 1.9 times that of 8, and at times left one without any; a listening socket shared by all gave it
1.9 to 3.3 times its share. Handing over costs some 0.1 ms per connection, not per request.
"""

import asyncio
import contextlib
import logging
import socket

from routing.servers.lives import Life
from routing.servers.supervisor import Fleet

logger = logging.getLogger(__name__)

BACKLOG = 1024
ACCEPTED_PER_TURN = 64
PAUSE_SECONDS = 0.05


class Dealer:
    """Owns the inference port."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._listening: socket.socket | None = None
        self._is_reading = False

    def start(self, host: str, port: int) -> int:
        """Open the port and return it. Raises OSError."""
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.settimeout(0)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        self._listening = listening
        bound: int = listening.getsockname()[1]
        return bound

    def follow_fleet(self) -> None:
        """Accept while somebody can take connections; otherwise they wait in the backlog."""
        if self._listening is None:
            return
        loop = asyncio.get_running_loop()
        is_wanted = any(life.takes_connections for life in self._fleet.lives.values())
        if is_wanted and not self._is_reading:
            loop.add_reader(self._listening.fileno(), self._accept)
        elif self._is_reading and not is_wanted:
            loop.remove_reader(self._listening.fileno())
        self._is_reading = is_wanted

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            if self._listening is None:
                return
            takers = [life for life in self._fleet.lives.values() if life.takes_connections]
            if not takers:
                self.follow_fleet()
                return
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError as error:
                logger.error("No connection can be accepted: %s", error)  # noqa: TRY400 - the sentence is the whole story
                self._pause()
                return
            with accepted:
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._hand(accepted, takers)

    def _hand(self, accepted: socket.socket, takers: list[Life]) -> None:
        for life in sorted(takers, key=lambda life: life.connections):
            if life.handing is None:
                continue
            with contextlib.suppress(OSError):
                # A process that does not read its socket, or is just gone, is passed over.
                socket.send_fds(life.handing, [b"c"], [accepted.fileno()])
                life.handed += 1
                return
        logger.error("No process took a connection; it is closed.")

    def _pause(self) -> None:
        """Out of files, for example: trying again at once would only burn time."""
        loop = asyncio.get_running_loop()
        if self._listening and self._is_reading:
            loop.remove_reader(self._listening.fileno())
            self._is_reading = False
            loop.call_later(PAUSE_SECONDS, self.follow_fleet)

    def stop(self) -> None:
        """Close the port."""
        listening, self._listening = self._listening, None
        if listening:
            if self._is_reading:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            listening.close()
