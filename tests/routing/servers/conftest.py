"""A router and scripted engines in the test's own event loop."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from routing.servers.http import Connection, HttpServer
from routing.servers.http_parts import HttpRequest, ServerLimits
from tests.routing.servers import running
from tests.routing.servers.client import Start
from tests.routing.servers.scripted import ADMIN_TOKEN, Stage
from tests.routing.servers.valves import Valve


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """An empty router; tests add engines and push a document."""
    stage = Stage(tmp_path / "state")
    await stage.start_router()
    yield stage
    await stage.stop()


@pytest.fixture
async def valve(stage: Stage) -> AsyncIterator[Valve]:
    """One engine that answers when it is told to."""
    valve = Valve()
    await stage.engine("a", valve)
    yield valve
    valve.let_all_go()


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


@pytest.fixture
async def launch() -> AsyncIterator[running.Start]:
    """Start processes; what is left of them is killed at the end."""
    async with running.starter() as run:
        yield run


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """The token of the admin port."""
    path = tmp_path / "token"
    path.write_text(ADMIN_TOKEN + "\n")
    return path
