"""What tests of several faces start."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.routing.servers.faces.pod import Pod


@pytest.fixture
async def pod(tmp_path: Path) -> AsyncIterator[Pod]:
    """A sidecar that is not started yet; tests give it engines."""
    pod = Pod(tmp_path)
    yield pod
    await pod.stop()
