"""Connections to engines: reuse, answers of every framing, each class of failure."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from routing.servers.origin import Origin
from routing.servers.upstream import (
    Collected,
    Deadlines,
    UpstreamError,
    UpstreamPool,
)

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
DEADLINES = Deadlines(connect=1.0, first_byte=2.0, stall=2.0)
REQUEST = b"GET / HTTP/1.1\r\nhost: t\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Listener:
    """A TCP server that talks as told and counts its connections."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.connections = 0
        self.open = 0

    async def __aenter__(self) -> Origin:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return Origin("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            await self._talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()


@pytest.fixture
async def pool() -> AsyncIterator[UpstreamPool]:
    pool = UpstreamPool()
    yield pool
    pool.close()


def says(*parts: bytes, closes: bool = False) -> Talk:
    """Answer each request with the same bytes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            if closes:
                return

    return talk


async def test_a_connection_serves_one_request_after_the_other(pool: UpstreamPool) -> None:
    listener = Listener(says(OK))
    async with listener as origin:
        for _ in range(5):
            answer = Collected()
            await pool.run(origin, REQUEST, answer, DEADLINES)
            assert (answer.status, answer.body) == (200, b"ok")

    assert listener.connections == 1


@pytest.mark.parametrize(
    ("parts", "closes", "body"),
    [
        pytest.param((OK,), False, b"ok", id="length"),
        pytest.param(
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
                b"1\r\nc\r\n0\r\n\r\n",
            ),
            False,
            b"abc",
            id="chunks",
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\n\r\n", b"until", b" end"), True, b"until end", id="close"
        ),
        pytest.param((b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n", OK), False, b"ok", id="interim"),
        pytest.param((b"HTTP/1.1 204 No Content\r\n\r\n",), False, b"", id="no-content"),
    ],
)
async def test_every_framing_is_read(
    pool: UpstreamPool, parts: tuple[bytes, ...], *, closes: bool, body: bytes
) -> None:
    async with Listener(says(*parts, closes=closes)) as origin:
        answer = Collected()
        await pool.run(origin, REQUEST, answer, DEADLINES)

    assert answer.body == body


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        pytest.param((b"SSH-2.0-OpenSSH\r\n\r\n",), "status", id="no-http"),
        pytest.param((b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",), "status", id="half"),
        pytest.param((), "connect", id="nothing"),
        pytest.param((OK + OK,), "status", id="two-answers"),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",),
            "status",
            id="both-lengths",
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\nok",),
            "status",
            id="two-lengths",
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-2\r\nok",),
            "status",
            id="bad-chunk",
        ),
        pytest.param((b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n",), "status", id="folded"),
        pytest.param((b"HTTP/1.1 200 OK\r\nx: ", b"y" * 600_000), "status", id="endless-header"),
    ],
)
async def test_an_answer_that_breaks_is_an_error_of_its_kind(
    pool: UpstreamPool, parts: tuple[bytes, ...], kind: str
) -> None:
    async with Listener(says(*parts, closes=True)) as origin:
        with pytest.raises(UpstreamError) as raised:
            await pool.run(origin, REQUEST, Collected(), DEADLINES)

    assert raised.value.kind == kind


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        pytest.param((), "timeout", id="before-the-first-byte"),
        pytest.param((b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nha",), "stall", id="after-it"),
    ],
)
async def test_silence_has_an_end(pool: UpstreamPool, parts: tuple[bytes, ...], kind: str) -> None:
    deadlines = Deadlines(connect=1.0, first_byte=0.2, stall=0.2)
    async with Listener(says(*parts)) as origin:
        with pytest.raises(UpstreamError) as raised:
            await pool.run(origin, REQUEST, Collected(), deadlines)

    assert raised.value.kind == kind


async def test_a_refused_connection_is_a_connect_error(pool: UpstreamPool) -> None:
    async with Listener(says(OK)) as origin:
        pass

    with pytest.raises(UpstreamError, match="cannot be connected") as raised:
        await pool.run(origin, REQUEST, Collected(), DEADLINES)

    assert raised.value.kind == "connect"


async def test_an_answer_over_the_bound_is_cut(pool: UpstreamPool) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
    async with Listener(says(head, b"x" * 1_000_000)) as origin:
        with pytest.raises(UpstreamError, match="over 1000 bytes"):
            await pool.run(origin, REQUEST, Collected(limit_bytes=1000), DEADLINES)


async def test_a_cancelled_exchange_cuts_its_connection_and_no_other(pool: UpstreamPool) -> None:
    closed = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()
        closed.set()

    async with Listener(wait) as slow, Listener(says(OK)) as good:
        running = asyncio.create_task(pool.run(slow, REQUEST, Collected(), DEADLINES))
        await pool.run(good, REQUEST, Collected(), DEADLINES)
        running.cancel()
        async with asyncio.timeout(5):
            await closed.wait()
        answer = Collected()
        await pool.run(good, REQUEST, answer, DEADLINES)

    assert answer.body == b"ok"


async def test_connections_idle_for_too_long_are_not_used_again() -> None:
    pool = UpstreamPool(idle_seconds=0.0)
    listener = Listener(says(OK))
    async with listener as origin:
        for _ in range(2):
            await asyncio.sleep(0.002)
            await pool.run(origin, REQUEST, Collected(), DEADLINES)
    pool.close()

    assert listener.connections == 2


async def test_surplus_connections_are_closed_while_others_are_used() -> None:
    pool = UpstreamPool(idle_seconds=0.1)
    listener = Listener(says(OK))
    async with listener as origin:
        runs = (pool.run(origin, REQUEST, Collected(), DEADLINES) for _ in range(4))
        await asyncio.gather(*runs)
        async with asyncio.timeout(5):
            while listener.open > 1:
                await pool.run(origin, REQUEST, Collected(), DEADLINES)
                await asyncio.sleep(0.005)
    pool.close()

    assert listener.connections >= 4


async def test_a_kept_connection_has_the_deadlines_of_its_own_exchange(pool: UpstreamPool) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.read()

    patient = Deadlines(connect=1.0, first_byte=600.0, stall=600.0)
    hasty = Deadlines(connect=1.0, first_byte=0.05, stall=600.0)
    listener = Listener(once)
    async with listener as origin, asyncio.timeout(5):
        await pool.run(origin, REQUEST, Collected(), patient)
        with pytest.raises(UpstreamError) as caught:
            await pool.run(origin, REQUEST, Collected(), hasty)

    assert (caught.value.kind, listener.connections) == ("timeout", 1)
