"""Draining endpoints: what runs there, and what becomes of it after the time for it."""

import asyncio
from typing import Any

import pytest

from routing.servers import draining
from tests.routing.servers.client import Answer
from tests.routing.servers.scripted import Engine, Stage, answers, chat, streams_forever


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "LOOK_SECONDS", 0.02)


async def begun(stage: Stage, engine: Engine, **body: Any) -> "asyncio.Task[Answer]":
    asking = asyncio.create_task(stage.ask(chat(stream=True, **body)))
    async with asyncio.timeout(5):
        while not stage.router.state.streams.get(("main", engine.name)):
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    return asking


async def drain(stage: Stage, name: str) -> None:
    assert (await stage.admin("POST", f"/admin/endpoints/{name}/drain")).status == 200


async def test_without_a_time_a_stream_ends_when_it_ends(stage: Stage) -> None:
    engine = await stage.engine("a", streams_forever)
    await stage.load()
    asking = await begun(stage, engine)

    await drain(stage, "a")
    await asyncio.sleep(0.3)
    is_running = not asking.done()
    asking.cancel()

    assert is_running
    await stage.no_leases()


@pytest.mark.parametrize("goes_on", [False, True], ids=["ended", "goes-on"])
async def test_after_its_time_a_stream_is_ended_or_goes_on_and_nobody_is_blamed(
    stage: Stage, *, goes_on: bool
) -> None:
    engine = await stage.engine("a", streams_forever)
    limits = {"drain_timeout_seconds": 0.1, "streams_continue": goes_on}
    await stage.load(limits=limits)
    asking = await begun(stage, engine)
    await stage.engine("b", answers)
    await stage.load(version=2, limits=limits)

    await drain(stage, "a")
    answer = await asyncio.wait_for(asking, 5)

    assert ("from" in answer.body.decode()) == goes_on
    assert ("stream-interrupted" in answer.body.decode()) != goes_on
    await asyncio.wait_for(engine.gone.wait(), 5)
    state = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]
    assert [one["breaker"]["last_failure"] for one in state["endpoints"]] == [None, None]
    assert stage.leases_open == 0
    assert stage.router.state.streams == {}
