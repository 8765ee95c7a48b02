"""Listens for gateways and keeps the set of their connections."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import cast

from routing.servers.faces.http2.connection import Connection
from routing.servers.faces.http2.handshakes import MOST_HANDSHAKES, TlsListener
from routing.servers.faces.http2.streams import Handler, RpcStream
from routing.servers.faces.http2.tls import Certificate

logger = logging.getLogger(__name__)

MOST_CONNECTIONS = 1024
MOST_STREAMS = 16_384
"""At once, of all connections: a stream lasts as long as its answer where the gateway shows it."""
MOST_KEPT_BYTES = 1024 * 1024 * 1024
"""Of all connections: messages that are not whole, and answers that a gateway does not take."""
COMPLAINT_SECONDS = 60.0
"""Between lines of the log about peers that break the rules."""

Method = Callable[[RpcStream], Handler]
"""Makes the handler of one call."""


class RpcServer:
    """A port with some methods, by path; with a certificate it speaks TLS and nothing else."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        *,
        most_streams: int = MOST_STREAMS,
        certificate: Certificate | None = None,
    ) -> None:
        self._methods = methods
        self._certificate = certificate
        self.most_streams = most_streams
        self.connections: set[Connection] = set()
        self._kept_bytes = 0
        self._complaints = 0
        self._complain_at = 0.0
        self._listener: asyncio.Server | TlsListener | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen and return the port, which the kernel chooses for 0. Raises OSError."""

        def make() -> Connection:
            return Connection(self)

        if self._certificate is not None:
            self._listener = TlsListener(self._certificate, make, most=MOST_HANDSHAKES)
            return await self._listener.start(host, port)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(make, host, port, backlog=1024, reuse_address=True)
        self._listener = server
        return cast(int, server.sockets[0].getsockname()[1])

    async def stop(self, *, drain_seconds: float) -> None:
        """Accept nothing more, let running streams end for so long, then close what is left."""
        if self._listener:
            self._listener.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + drain_seconds
        for connection in list(self.connections):
            connection.leave()
        while self.connections and loop.time() < deadline:
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)

    def open(self, stream: RpcStream, path: str) -> Handler | None:
        """The handler of a method by its path; `None` when there is no such method."""
        method = self._methods.get(path)
        return None if method is None else method(stream)

    def has_room(self) -> bool:
        """Whether all connections together may have one stream more."""
        return sum(len(one.streams) for one in self.connections) <= self.most_streams

    def came(self, connection: Connection, transport: asyncio.Transport) -> bool:
        """Take a connection; the one that has been idle for longest gives way to it.

        False when all are in use.
        """
        if len(self.connections) >= MOST_CONNECTIONS and not self._made_way():
            return False
        self.connections.add(connection)
        line = transport.get_extra_info("socket")
        if line is not None:
            # A gateway that vanished without a word must not keep its streams.
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return True

    def _made_way(self) -> bool:
        idle = [one for one in self.connections if not one.streams]
        if not idle:
            return False
        oldest = min(idle, key=lambda one: one.heard_at)
        oldest.abort()
        self.connections.discard(oldest)
        return True

    def went(self, connection: Connection) -> None:
        """A connection is gone."""
        self.connections.discard(connection)

    def keep(self, more: int) -> None:
        """So many bytes more are kept for all connections together, or fewer.

        When it is too much, whoever lets the most lie is cut off.
        """
        self._kept_bytes += more
        if more > 0 and self._kept_bytes > MOST_KEPT_BYTES and self.connections:
            worst = max(self.connections, key=lambda one: one.kept_bytes)
            self.complain(f"{worst.kept_bytes} bytes lay unread or unfinished")
            worst.abort()

    def complain(self, why: str) -> None:
        """A peer broke the rules; told in the log once in a while."""
        self._complaints += 1
        now = asyncio.get_running_loop().time()
        if now >= self._complain_at:
            logger.warning(
                "A peer broke the rules of HTTP/2 and was cut off: %s (%d so far).",
                why,
                self._complaints,
            )
            self._complain_at = now + COMPLAINT_SECONDS
