"""Datagrams between routers: sealed, to all addresses of a peer, never waiting."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from routing.servers import peer_port
from routing.servers.peer_port import Address, PeerAddressError, Peering, PeerPort, parse_peer

SECRET = b"a secret of all routers"


class Ear:
    """What a port heard, and what became of its packets."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.counts: Counter[str] = Counter()

    def count(self, result: str) -> None:
        self.counts[result] += 1


@asynccontextmanager
async def opened(
    ear: Ear, *peers: Address, secret: bytes = SECRET
) -> AsyncIterator[tuple[PeerPort, int]]:
    peering = Peering(host="127.0.0.1", gossip_port=0, peers=peers, secret=secret)
    port = peering.port(hear=ear.heard.append, count=ear.count)
    number = await port.start("127.0.0.1", 0)
    try:
        yield port, number
    finally:
        await port.stop()


async def until(condition: Callable[[], bool], action: Callable[[], object]) -> None:
    """Repeat an action until its effect is seen: datagrams may get lost."""
    async with asyncio.timeout(10):
        while not condition():
            action()
            await asyncio.sleep(0.01)


async def test_what_one_posts_its_peers_hear() -> None:
    ears = [Ear(), Ear(), Ear()]
    async with AsyncExitStack() as stack:
        ports = [(await stack.enter_async_context(opened(ear)))[1] for ear in ears[:2]]
        peers = [("127.0.0.1", port) for port in ports]
        speaker, _ = await stack.enter_async_context(opened(ears[2], *peers))

        await until(lambda: all(ear.heard for ear in ears[:2]), lambda: speaker.post(b"loads"))

    assert ears[0].heard[0] == ears[1].heard[0] == b"loads"
    assert ears[2].heard == []
    assert ears[2].counts["sent"] >= 2


async def test_who_does_not_hold_the_secret_is_not_heard() -> None:
    ear = Ear()
    async with AsyncExitStack() as stack:
        _, number = await stack.enter_async_context(opened(ear))
        other = opened(Ear(), ("127.0.0.1", number), secret=b"another")
        stranger, _ = await stack.enter_async_context(other)
        await until(lambda: ear.counts["wrong seal"] > 0, lambda: stranger.post(b"loads"))

    assert ear.heard == []


@pytest.mark.parametrize(
    ("packet", "reason"), [(b"junk", "not a sealed packet"), (b"x" * 4000, "too long")]
)
async def test_junk_is_counted_only(packet: bytes, reason: str) -> None:
    ear = Ear()
    async with opened(ear) as (_, number):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            await until(
                lambda: ear.counts[reason] > 0,
                lambda: stranger.sendto(packet, ("127.0.0.1", number)),
            )

    assert ear.heard == []


async def test_a_peer_without_address_or_without_anybody_there_harms_nobody() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = unused.getsockname()[1]
    ear, speaking = Ear(), Ear()
    async with opened(ear) as (_, number):
        peers = (("name.invalid", 1), ("127.0.0.1", nobody), ("127.0.0.1", number))
        async with opened(speaking, *peers) as (port, _):
            await until(lambda: bool(ear.heard), lambda: port.post(b"loads"))

    assert ear.heard[0] == b"loads"


@pytest.mark.parametrize(
    ("text", "address"),
    [("router-b:7000", ("router-b", 7000)), ("[::1]:7000", ("::1", 7000))],
)
def test_peers_are_written_as_host_and_port(text: str, address: Address) -> None:
    assert parse_peer(text) == address


@pytest.mark.parametrize("text", ["router-b", ":7000", "router-b:", "router-b:0", "r:99999"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(PeerAddressError, match="host:port"):
        parse_peer(text)


async def test_what_the_socket_does_not_take_is_lost_and_fills_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer_port, "MAX_UNSENT_BYTES", -1)
    ear, speaking = Ear(), Ear()
    async with opened(ear) as (_, number), opened(speaking, ("127.0.0.1", number)) as (port, _):
        await until(lambda: speaking.counts["no-room"] > 0, lambda: port.post(b"loads"))

    assert speaking.counts["sent"] == 0
