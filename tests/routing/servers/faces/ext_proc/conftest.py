"""A router with one engine, and its face for gateways."""

import pytest

from routing.servers.faces.ext_proc.stream import Face
from routing.servers.faces.picks import Picks
from tests.routing.servers.scripted import Stage


@pytest.fixture
async def picks(stage: Stage) -> Picks:
    """Of a pool with two engines; tests may load another document."""
    await stage.engine("a")
    await stage.engine("b")
    await stage.load()
    return Picks(stage.router.state)


@pytest.fixture
async def face(picks: Picks) -> Face:
    return Face(picks)
