"""A listener for TLS: each connection belongs to its protocol once its handshake is over.

asyncio's own server tells nobody of peers that never end their handshake; here they are counted,
and the oldest gives way when there are too many.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import cast

from routing.servers.faces.http2.tls import Certificate

logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 2.0
"""For a peer to say good-bye; it is cut off then."""
MOST_HANDSHAKES = 256
"""At once."""
BACKLOG = 1024
PAUSE_SECONDS = 0.1
"""After a connection that could not be taken, as when all file descriptors are in use."""


class TlsListener:
    """See the module."""

    def __init__(
        self, certificate: Certificate, make: Callable[[], asyncio.Protocol], *, most: int
    ) -> None:
        self._certificate = certificate
        self._make = make
        self._most = most
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """Oldest first."""

    async def start(self, host: str, port: int) -> int:
        """Listen and return the port, which the kernel chooses for 0. Raises OSError."""
        loop = asyncio.get_running_loop()
        family, _, _, _, address = (
            await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        )[0]
        self._listener = socket.create_server(address, family=family, backlog=BACKLOG)
        self._listener.settimeout(0)
        self._accepting = loop.create_task(self._accept(self._listener))
        return cast(int, self._listener.getsockname()[1])

    def close(self) -> None:
        """Accept nothing more, and end what is not a connection yet."""
        for task in (self._accepting, *self._handshakes):
            if task:
                task.cancel()
        if self._listener:
            self._listener.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                line, _ = await loop.sock_accept(listener)
            except OSError as error:
                logger.warning("A connection could not be taken: %s.", error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if len(self._handshakes) >= self._most:
                oldest = next(iter(self._handshakes))
                oldest.cancel()
                # At once: it may end later than the next one comes, which has to end another.
                self._forget(oldest)
            task = loop.create_task(self._shake(line))
            self._handshakes[task] = None
            task.add_done_callback(self._forget)
            # Let it begin: one that is cancelled before would leave its connection open.
            await asyncio.sleep(0)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)

    async def _shake(self, line: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                self._make,
                line,
                ssl=self._certificate.context(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )
        except (OSError, ssl.SSLError) as error:
            logger.debug("A handshake failed: %s.", error)
        finally:
            self._forget(cast("asyncio.Task[None]", asyncio.current_task()))
