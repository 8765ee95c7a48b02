"""Clients that are slow, silent, half gone or speak something else: ended, and nothing is kept."""

import asyncio
import json

import pytest

from tests.routing.servers.client import RawClient, Start, echo, message
from tests.routing.servers.scripted import (
    CHAT,
    SECRET,
    Stage,
    answers,
    chat,
    hangs,
    streams_forever,
)

HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {SECRET}\r\n".encode()
KEY = {"authorization": f"Bearer {SECRET}"}


async def ended(client: RawClient) -> bytes:
    """What still came until the server closed."""
    async with asyncio.timeout(5):
        try:
            return await client.reader.read()
        except ConnectionError:
            return b""


@pytest.mark.parametrize(
    "begun", [b"P", b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nhost: t\r\nx-a"]
)
async def test_a_header_that_never_ends_is_408(start: Start, begun: bytes) -> None:
    port = await start(echo, request_seconds=0)

    async with RawClient(port) as client:
        await client.send(begun)
        answer = await client.answer()

    assert (answer.status, answer.headers["connection"]) == (408, "close")


async def test_bytes_that_drip_do_not_prolong_a_request(start: Start) -> None:
    port = await start(echo, request_seconds=0, body_bytes=10_000)

    async with RawClient(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 9000\r\n\r\n")
        dripping = asyncio.create_task(_drip(client))
        answer = await client.answer()
        dripping.cancel()

    assert answer.status == 408


async def _drip(client: RawClient) -> None:
    while True:
        await client.send(b"x")
        await asyncio.sleep(0.02)


async def test_a_connection_that_says_nothing_is_closed(start: Start) -> None:
    port = await start(echo, idle_seconds=0)

    async with RawClient(port) as client:
        assert await ended(client) == b""


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), id="tls"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), id="http2"),
        pytest.param(b"GET / HTTP/3.7\r\nhost: t\r\n\r\n", id="unknown-version"),
        pytest.param(b"\x00" * 100, id="zeros"),
        pytest.param(b"SSH-2.0-x\r\n", id="ssh"),
    ],
)
async def test_another_protocol_is_refused(start: Start, data: bytes) -> None:
    port = await start(echo)

    async with RawClient(port) as client:
        await client.send(data)
        said = await ended(client)

    assert said.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    "begun", [b"POST /v1/ch", HEAD, HEAD + b"content-length: 70000\r\n\r\n" + b"x" * 60_000]
)
async def test_half_a_request_and_no_more_is_the_end(stage: Stage, begun: bytes) -> None:
    await stage.engine("a", answers)
    await stage.load()

    async with RawClient(stage.router.port) as client:
        await client.send(begun)
        client.writer.write_eof()
        await ended(client)

    server = stage.router._public
    async with asyncio.timeout(5):
        while server.connections:
            await asyncio.sleep(0.005)
    assert server.held_bytes == 0
    assert stage.engines["a"].requests == []


@pytest.mark.lesson("S02")
@pytest.mark.parametrize("stream", [False, True])
async def test_who_closes_its_half_has_left_and_frees_the_engine(
    stage: Stage, stream: bool
) -> None:
    """A client that is gone looks the same; an engine must not work on for nobody."""
    engine = await stage.engine("a", streams_forever if stream else hangs)
    await stage.load()

    async with RawClient(stage.router.port) as client:
        await client.send(message("POST", CHAT, chat(stream=stream), headers=KEY))
        async with asyncio.timeout(5):
            while not engine.requests:
                await asyncio.sleep(0.005)
        client.writer.write_eof()
        async with asyncio.timeout(5):
            await engine.gone.wait()

    await stage.no_leases()
    assert (await stage.usage(1))[0]["outcome"] == "aborted"


async def test_a_crowd_of_slow_clients_keeps_nobody_waiting(stage: Stage) -> None:
    await stage.engine("a", answers)
    await stage.load()
    clients = [RawClient(stage.router.port) for _ in range(200)]
    for client in clients:
        await client.__aenter__()
        await client.send(HEAD + b"content-length: 5000\r\n\r\n{")

    answer = await stage.ask(chat())

    assert answer.status == 200
    assert len(stage.router._public.connections) >= 200
    for client in clients:
        await client.__aexit__(None, None, None)
    assert json.loads(answer.body)["choices"]
