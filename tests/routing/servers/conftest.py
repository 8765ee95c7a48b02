"""A router and scripted engines in the test's own event loop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.routing.servers.scripted import Stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """An empty router; tests add engines and push a document."""
    stage = Stage(tmp_path / "state")
    await stage.start_router()
    yield stage
    await stage.stop()
