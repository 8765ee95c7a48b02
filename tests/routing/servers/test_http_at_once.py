"""Handlers that begin before they have a task: the same answers in the same order."""

import asyncio

import pytest

from routing.servers.http import Connection, HttpServer
from routing.servers.http_parts import HttpRequest, ServerLimits
from tests.routing.servers.client import RawClient, message


class Handler:
    """Answers with the path; waits for `go` first when the path says so."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun: list[str] = []
        self.depth = self.deepest = 0

    async def __call__(self, request: HttpRequest, client: Connection) -> None:
        self.begun.append(request.path)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        try:
            if request.path == "/waits":
                await self.go.wait()
            client.respond(200, request.path.encode())
        finally:
            self.depth -= 1


@pytest.fixture
async def handler() -> Handler:
    return Handler()


@pytest.fixture
async def server(handler: Handler) -> HttpServer:
    limits = ServerLimits(body_bytes=lambda: 1000, begins_at_once=True)
    return HttpServer(handler, limits=limits, error_body=lambda status, text: text.encode())


async def test_pipelined_requests_are_answered_in_order_and_none_inside_another(
    handler: Handler, server: HttpServer
) -> None:
    port = await server.start("127.0.0.1", 0)
    paths = ["/0", "/waits", *(f"/{number}" for number in range(1, 300))]
    async with RawClient(port) as client:
        await client.send(b"".join(message("GET", path) for path in paths))
        first = await client.answer()
        handler.go.set()
        answers = [first, *[await client.answer() for _ in paths[1:]]]
    await server.stop(drain_seconds=0)

    assert [answer.body.decode() for answer in answers] == paths
    assert handler.deepest == 1


async def test_what_comes_behind_the_last_request_is_not_begun(
    handler: Handler, server: HttpServer
) -> None:
    port = await server.start("127.0.0.1", 0)
    last = message("GET", "/last", headers={"connection": "close"})
    async with RawClient(port) as client:
        await client.send(last + message("GET", "/more"))
        assert (await client.answer()).body == b"/last"
    await server.stop(drain_seconds=0)

    assert handler.begun == ["/last"]


async def test_a_client_that_leaves_cancels_what_waits(
    handler: Handler, server: HttpServer
) -> None:
    port = await server.start("127.0.0.1", 0)
    async with RawClient(port) as client:
        await client.send(message("GET", "/waits"))
        while not handler.begun:
            await asyncio.sleep(0)
    async with asyncio.timeout(5):
        while handler.depth:
            await asyncio.sleep(0)
    await server.stop(drain_seconds=0)

    assert handler.depth == 0
