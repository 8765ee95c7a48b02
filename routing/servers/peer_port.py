"""The datagram port on which routers hear each other; sealed, see `routing.servers.sealing`.

A peer is given as `host:port`; a name with several addresses, such as a headless service, is all of
them. Names are looked up again regularly, so a peer may move. Sending never waits: what the socket
does not take is lost, which the content allows.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from routing.servers import clock
from routing.servers.sealing import Opener, Sealer, SealError, key_of

logger = logging.getLogger(__name__)

LOOKUP_SECONDS = 10.0
MAX_ADDRESSES = 64
MAX_PACKET_BYTES = 2048
MAX_UNSENT_BYTES = 256 * 1024
"""The event loop keeps what the socket does not take, without a bound of its own."""

Address = tuple[str, int]
Count = Callable[[str], None]
"""Counts a packet by what became of it."""


class PeerAddressError(ValueError):
    """A peer that is not written as host:port."""


def parse_peer(text: str) -> Address:
    """Read `host:port`, also `[::1]:7000`. Raises PeerAddressError."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise PeerAddressError(f"The peer '{text}' is not of the form host:port.")
    return host.strip("[]"), int(port)


class PeerPort(asyncio.DatagramProtocol):
    """Sends to all peers, hears whoever holds the key."""

    def __init__(
        self,
        *,
        key: bytes,
        peers: tuple[Address, ...],
        hear: Callable[[bytes], None],
        count: Count,
    ) -> None:
        self._peers = peers
        self._sealer, self._opener = Sealer(key), Opener(key)
        self._hear = hear
        self._count = count
        self._addresses: tuple[Any, ...] = ()
        self._family = socket.AF_INET
        self._transport: asyncio.DatagramTransport | None = None
        self._lookup: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> int:
        """Open the port and return it. Raises OSError."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=(host, port))
        own = cast("socket.socket", transport.get_extra_info("socket"))
        self._family = own.family
        self._lookup = loop.create_task(self._look_up_for_ever())
        return cast(int, own.getsockname()[1])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def post(self, content: bytes) -> None:
        """Send to each known address of each peer."""
        transport = self._transport
        if transport is None or not self._addresses:
            return
        if transport.get_write_buffer_size() > MAX_UNSENT_BYTES:  # type: ignore[attr-defined]  # every loop's datagram transport has it
            self._count("no-room")
            return
        packet = self._sealer.seal(content, unix_now=clock.unix_now())
        for address in self._addresses:
            transport.sendto(packet, address)
            self._count("sent")

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """Open a packet and pass its content on; whatever is wrong with it is counted only."""
        try:
            if len(data) > MAX_PACKET_BYTES:
                raise SealError("too long")
            content = self._opener.open(data, unix_now=clock.unix_now())
        except SealError as error:
            self._count(error.reason)
            return
        self._count("heard")
        self._hear(content)

    def error_received(self, exc: Exception) -> None:
        """A peer that is down answers with ICMP; that is no news."""

    async def _look_up_for_ever(self) -> None:
        while True:
            found: list[Any] = []
            for peer in self._peers:
                found += await self._look_up(peer)
            self._addresses = tuple(dict.fromkeys(found))[:MAX_ADDRESSES]
            await asyncio.sleep(LOOKUP_SECONDS if found else 1.0)

    async def _look_up(self, peer: Address) -> list[Any]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(5.0):
                answers = await loop.getaddrinfo(*peer, family=self._family, type=socket.SOCK_DGRAM)
        except OSError as error:
            logger.debug("No address of peer %s: %s", peer[0], error)
            return []
        return [answer[4] for answer in answers]

    async def stop(self) -> None:
        """Close the port."""
        if self._lookup:
            self._lookup.cancel()
            await asyncio.gather(self._lookup, return_exceptions=True)
        if self._transport:
            self._transport.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Peering:
    """With whom a router gossips."""

    host: str
    gossip_port: int
    peers: tuple[Address, ...]
    secret: bytes

    def port(self, *, hear: Callable[[bytes], None], count: Count) -> PeerPort:
        """The port for it, not yet open."""
        return PeerPort(key=key_of(self.secret), peers=self.peers, hear=hear, count=count)
