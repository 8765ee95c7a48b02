"""Engines that listen on loopback, each on a free port, stopped after the test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from routing.testbed.engine import Engine
from tests.routing.testbed.helpers import make_settings

StartEngine = Callable[..., Awaitable[Engine]]


@pytest.fixture
async def start_engine() -> AsyncIterator[StartEngine]:
    """`await start_engine(role="prefill", …)` starts an engine with these settings."""
    engines: list[Engine] = []

    async def start(**overrides: Any) -> Engine:
        engine = Engine(make_settings(**overrides))
        engines.append(engine)
        await engine.start()
        return engine

    yield start
    for engine in engines:
        await engine.stop(grace_seconds=0.5)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client with a time limit."""
    async with httpx.AsyncClient(timeout=20.0) as http:
        yield http
