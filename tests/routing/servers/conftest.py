"""A router and scripted engines in the test's own event loop."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from routing.servers.http import Connection, HttpServer
from routing.servers.http_parts import HttpRequest, ServerLimits
from tests.routing.servers.client import Start
from tests.routing.servers.scripted import Stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """An empty router; tests add engines and push a document."""
    stage = Stage(tmp_path / "state")
    await stage.start_router()
    yield stage
    await stage.stop()


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """HTTP servers of a handler, ended with the test."""
    servers: list[HttpServer] = []

    async def run(
        handler: Callable[[HttpRequest, Connection], Awaitable[None]], **limits: int
    ) -> int:
        body_bytes = limits.pop("body_bytes", 1000)
        server = HttpServer(
            handler,
            limits=ServerLimits(body_bytes=lambda: body_bytes, **limits),
            error_body=lambda status, text: f"{status}|{text}".encode(),
        )
        servers.append(server)
        return await server.start("127.0.0.1", 0)

    yield run
    for server in servers:
        await server.stop(drain_seconds=0)
