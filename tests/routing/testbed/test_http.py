"""The small HTTP server: order, keep-alive, bounds, and what is not HTTP."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from routing.testbed import http
from routing.testbed.http import Exchange, Server, chunk

Talk = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def echo(exchange: Exchange) -> None:
    """Answer with what was asked; `/later` answers after a moment."""
    answer = f"{exchange.method} {exchange.path} {len(exchange.body)}".encode()
    if exchange.path == "/later":
        asyncio.get_running_loop().call_later(0.05, exchange.send, 200, answer)
    else:
        exchange.send(200, answer, b"text/plain")


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    """A connection to an echo server."""
    server = Server(echo)
    port = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    yield reader, writer
    writer.close()
    await server.stop(grace_seconds=0.2)


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next answer, within five seconds."""
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(line for line in lines if line.startswith("content-length:"))
        return int(lines[0].split()[1]), await reader.readexactly(int(length.split(":")[1]))


async def test_a_connection_serves_many_requests_in_order(talk: Talk) -> None:
    reader, writer = talk
    writer.write(b"GET /later HTTP/1.1\r\nhost: x\r\n\r\nGET /now HTTP/1.1\r\nhost: x\r\n\r\n")

    answers = [await answer(reader) for _ in range(2)]

    assert answers == [(200, b"GET /later 0"), (200, b"GET /now 0")]


async def test_bodies_come_with_a_length_or_in_chunks(talk: Talk) -> None:
    reader, writer = talk
    writer.write(b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello")
    head = b"POST /b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    writer.write(head + chunk(b"abc") + chunk(b"defg") + http.LAST_CHUNK)

    answers = [await answer(reader) for _ in range(2)]

    assert answers == [(200, b"POST /a 5"), (200, b"POST /b 7")]


async def test_a_client_that_asks_first_is_told_to_go_on(talk: Talk) -> None:
    reader, writer = talk
    head = b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    writer.write(head)

    async with asyncio.timeout(5):
        go_on = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"ok")

    assert go_on.startswith(b"HTTP/1.1 100")
    assert await answer(reader) == (200, b"POST / 2")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /later HTTP/1.1\r\nhost: x\r\n\r\n" * 20, 503),
    ],
    ids=["no-http", "long-header", "too-many"],
)
async def test_what_is_over_a_bound_is_refused_and_closed(
    sent: bytes, status: int, talk: Talk
) -> None:
    reader, writer = talk
    writer.write(sent)

    async with asyncio.timeout(5):
        everything = await reader.read()

    assert f"HTTP/1.1 {status} ".encode() in everything


async def test_a_body_over_the_bound_is_refused(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_BODY_BYTES", 1000)
    reader, writer = talk
    writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n" + b"x" * 2000)

    assert (await answer(reader))[0] == 413


async def test_a_connection_that_says_close_is_closed(talk: Talk) -> None:
    reader, writer = talk
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")

    async with asyncio.timeout(5):
        everything = await reader.read()

    assert everything.endswith(b"GET / 0")


async def test_stopping_lets_an_answer_under_way_end() -> None:
    asked = asyncio.Event()

    def handle(exchange: Exchange) -> None:
        asked.set()
        asyncio.get_running_loop().call_later(0.05, exchange.send, 200, b"late")

    server = Server(handle)
    port = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    await asyncio.wait_for(asked.wait(), 5)

    _, got = await asyncio.gather(server.stop(grace_seconds=2.0), answer(reader))
    writer.close()

    assert got == (200, b"late")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
