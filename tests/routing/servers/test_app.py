"""Starting and stopping a whole router."""

import asyncio
import json
import tomllib
from pathlib import Path

import pytest

from routing.servers.app import SOFTWARE, Router, RouterOptions
from tests.routing.servers.client import RawClient, message
from tests.routing.servers.scripted import (
    ADMIN_TOKEN,
    CHAT,
    SECRET,
    Stage,
    chat,
    streams_forever,
)

ROOT = Path(__file__).resolve().parents[3]


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["version"] == SOFTWARE


async def test_a_busy_port_is_an_error_and_leaves_nothing_open(tmp_path: Path) -> None:
    options = {"name": "r", "admin_token": ADMIN_TOKEN.encode()}
    first = Router(RouterOptions(state_dir=tmp_path / "1", **options))
    await first.start()
    second = Router(RouterOptions(state_dir=tmp_path / "2", admin_port=first.port, **options))

    with pytest.raises(OSError, match="address already in use"):
        await second.start()

    await second.stop()
    await first.stop()


async def test_a_stream_that_outlives_the_drain_is_cut_and_billed(stage: Stage) -> None:
    engine = await stage.engine("a", streams_forever)
    await stage.load()

    async with RawClient(stage.router.port) as client:
        headers = {"authorization": f"Bearer {SECRET}"}
        await client.send(message("POST", CHAT, chat(stream=True), headers=headers))
        await client.head()
        await client.chunk()
        await stage.router.stop()

    async with asyncio.timeout(5):
        await engine.gone.wait()
    (stored,) = (stage.folder / "usage").glob("*-*.json")
    (used,) = json.loads(stored.read_bytes())["events"]
    assert (used["outcome"], used["token_source"]) == ("aborted", "counted_by_router")
    await stage.start_router()
