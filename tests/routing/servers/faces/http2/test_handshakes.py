"""The port with TLS: handshakes, and what is spoken after them."""

import asyncio
import contextlib
import shutil
import socket
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.frames import Code
from routing.servers.faces.http2.tls import Certificate
from tests.routing.servers.faces.certificates import CERTIFICATES, trusting
from tests.routing.servers.faces.http2.peer import ECHO, Echoes, Peer

LOOKS = "routing.servers.faces.http2.tls.LOOK_SECONDS"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "tls.crt", tmp_path / "tls.key"
    for path in paths:
        shutil.copyfile(CERTIFICATES / f"a{path.suffix}", path)
    return paths


@pytest.fixture
async def echoes(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Echoes]:
    monkeypatch.setattr(LOOKS, 0.0)
    echoes = Echoes(certificate=Certificate(*files, now=time.monotonic))
    await echoes.start()
    yield echoes
    await echoes.server.stop(drain_seconds=0)


async def test_a_call_passes_over_tls(echoes: Echoes) -> None:
    async with Peer(echoes.port, tls=trusting("a")) as peer:
        await peer.opens_a_call()
        secured = peer.writer.get_extra_info("ssl_object")

        assert (secured.version(), secured.selected_alpn_protocol()) == ("TLSv1.3", "h2")


@pytest.mark.parametrize("size", [0, 1, 100_000, 5_000_000])
async def test_grpcs_own_library_speaks_with_it(echoes: Echoes, size: int) -> None:
    credentials = grpc.ssl_channel_credentials((CERTIFICATES / "a.crt").read_bytes())
    options = [("grpc.max_receive_message_length", 2**26)]
    address = f"127.0.0.1:{echoes.port}"
    async with grpc.aio.secure_channel(address, credentials, options) as channel:
        call: Any = channel.stream_stream(ECHO)()
        message = b"m" * size
        await call.write(message)
        assert await call.read() == message
        await call.done_writing()

        assert await call.read() is grpc.aio.EOF


@pytest.mark.parametrize("offered", [["http/1.1"], []])
async def test_who_does_not_offer_http2_is_let_go(echoes: Echoes, offered: list[str]) -> None:
    async with Peer(echoes.port, tls=trusting("a", offers=offered)) as peer:
        assert await peer.frame() is None


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_11_is_refused(echoes: Echoes) -> None:
    old = trusting("a")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")

    with pytest.raises((ssl.SSLError, ConnectionError)):
        await Peer(echoes.port, tls=old).__aenter__()


async def test_who_speaks_without_tls_gets_nothing(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.say(frames.PREFACE + frames.settings({}))

        assert not await peer.reader.read(100) or await peer.is_gone()
    assert not echoes.server.connections


async def test_a_new_certificate_is_shown_without_a_new_start(
    echoes: Echoes, files: tuple[Path, Path]
) -> None:
    async with Peer(echoes.port, tls=trusting("a")) as before:
        await before.opens_a_call()
        for path in files:
            shutil.copyfile(CERTIFICATES / f"b{path.suffix}", path)
        async with Peer(echoes.port, tls=trusting("b")) as after:
            await after.opens_a_call()
        with pytest.raises(ssl.SSLCertVerificationError):
            await Peer(echoes.port, tls=trusting("a")).__aenter__()
        # Who was there before stays.
        await before.say(frames.frame(frames.PING, 0, 0, b"12345678"))
        assert (await before.until(frames.PING)).flags == frames.ACK


async def test_a_broken_rule_is_told_over_tls(echoes: Echoes) -> None:
    async with Peer(echoes.port, tls=trusting("a")) as peer:
        await peer.greet()
        await peer.say(frames.frame(frames.PUSH_PROMISE, 0, 1))

        assert await peer.broken() == Code.PROTOCOL_ERROR


async def test_of_too_many_handshakes_the_oldest_gives_way(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("routing.servers.faces.http2.server.MOST_HANDSHAKES", 2)
    echoes = Echoes(certificate=Certificate(*files, now=time.monotonic))
    port = await echoes.start()
    async with Peer(port, tls=trusting("a")) as ended:
        await ended.opens_a_call()
    async with Peer(port) as first, Peer(port) as second, Peer(port, tls=trusting("a")) as good:
        assert await first.is_gone()
        await good.opens_a_call()
        assert not second.reader.at_eof()
    await echoes.server.stop(drain_seconds=0)


async def test_a_crowd_that_comes_at_once_is_no_more_than_the_most(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them wait in the kernel's queue before the first is looked at."""
    monkeypatch.setattr("routing.servers.faces.http2.server.MOST_HANDSHAKES", 2)
    echoes = Echoes(certificate=Certificate(*files, now=time.monotonic))
    port = await echoes.start()
    async with contextlib.AsyncExitStack() as stack:
        lines = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(10)
        ]
        crowd = [await asyncio.open_connection(sock=line) for line in lines]
        for _, writer in crowd:
            stack.callback(writer.close)
        async with asyncio.timeout(5):
            for reader, _ in crowd[:8]:
                assert await reader.read(1) == b""

        assert not any(reader.at_eof() for reader, _ in crowd[8:])
    await echoes.server.stop(drain_seconds=0)


async def test_a_handshake_without_an_end_is_ended(
    echoes: Echoes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("routing.servers.faces.http2.handshakes.HANDSHAKE_SECONDS", 0.05)
    async with Peer(echoes.port) as peer:
        await peer.say(b"\x16\x03\x01\x02\x00\x01")

        assert await peer.is_gone()


async def test_a_server_that_stops_ends_handshakes(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer, Peer(echoes.port, tls=trusting("a")) as other:
        await other.opens_a_call()
        await echoes.server.stop(drain_seconds=0)
        async with asyncio.timeout(5):
            assert await peer.is_gone()
            assert await other.is_gone()
