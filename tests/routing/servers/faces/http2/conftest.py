"""A server that echoes."""

from collections.abc import AsyncIterator

import pytest

from tests.routing.servers.faces.http2.peer import Echoes


@pytest.fixture
async def echoes() -> AsyncIterator[Echoes]:
    echoes = Echoes()
    await echoes.start()
    yield echoes
    await echoes.server.stop(drain_seconds=0)
