"""The generator's client: answers in pieces, connections that were closed behind its back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from routing.testbed.load_client import NoAnswerError, Reply, Target

EVENT = (
    b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\ndata: [DONE]\n\n'
)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(EVENT), EVENT)

Serve = Callable[[int, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Start = Callable[[Serve], Awaitable[Target]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`await start(serve)` gives a target; `serve` gets the number of each connection, from 0."""
    servers: list[asyncio.Server] = []
    targets: list[Target] = []

    async def begin(serve: Serve) -> Target:
        numbers = iter(range(100))

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with asyncio.timeout(10):
                await serve(next(numbers), reader, writer)
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        servers.append(server)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        targets.append(Target(url, path="/v1/x", key="secret", connect_seconds=2.0))
        return targets[-1]

    yield begin
    for target in targets:
        target.close()
    for server in servers:
        server.close()
        await server.wait_closed()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Head and body of one request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


async def test_a_request_carries_key_and_id(start: Start) -> None:
    seen: list[bytes] = []

    async def serve(_: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(ANSWER)

    target = await start(serve)
    await target.post(b"{}", request_id="r-1")

    assert seen[0].startswith(b"POST /v1/x HTTP/1.1\r\n")
    assert b"authorization: Bearer secret\r\n" in seen[0]
    assert b"x-request-id: r-1\r\n" in seen[0]


async def test_usage_is_found_however_the_answer_is_cut(start: Start) -> None:
    async def serve(_: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for byte in ANSWER:
            writer.write(bytes([byte]))
            await writer.drain()

    target = await start(serve)
    reply = await target.post(b"{}", request_id="r")

    assert reply.failure() is None
    assert reply.usage() == {"prompt_tokens": 5, "completion_tokens": 2}
    assert reply.first_at is not None
    assert reply.last_at is not None
    assert reply.last_at >= reply.first_at


async def test_a_connection_that_was_closed_while_idle_is_replaced(start: Start) -> None:
    served: list[int] = []

    async def serve(
        number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await read_request(reader)
        writer.write(ANSWER)
        served.append(number)
        if number == 0:
            # The second request is read and dropped, as by a server that just timed out.
            await read_request(reader)

    target = await start(serve)
    replies = [await target.post(b"{}", request_id="r") for _ in range(2)]

    assert [reply.failure() for reply in replies] == [None, None]
    assert served == [0, 1]


async def test_a_fresh_connection_without_answer_is_an_error(start: Start) -> None:
    async def serve(_: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)

    target = await start(serve)

    with pytest.raises(NoAnswerError):
        await target.post(b"{}", request_id="r")


def test_a_reply_without_usage_says_so() -> None:
    reply = Reply()
    reply.status = 200
    reply.tail = b'data: {"choices":[]}\n\ndata: [DONE]\n\n'

    assert reply.failure() is None
    assert reply.usage() is None
