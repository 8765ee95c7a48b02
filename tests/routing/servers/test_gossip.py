"""Gossip moves packets between routers in service."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routing.core.peer_messages import Packet, encode
from routing.pool.router import PoolRouter
from routing.servers.gossip import Gossip
from tests.routing.servers.scripted import Engine, Stage, answers, chat, document


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def pool_router(stage: Stage) -> PoolRouter:
    return stage.router.state.directory.pools["main"].router


@pytest.fixture
async def other(tmp_path: Path) -> Stage:
    """Another router beside `stage`."""
    made = Stage(tmp_path / "other")
    await made.start_router()
    return made


async def test_a_request_here_counts_there_until_it_ends(stage: Stage, other: Stage) -> None:
    going_on = asyncio.Event()

    async def waits(engine: Engine, *rest: Any) -> None:
        await going_on.wait()
        await answers(engine, *rest)

    engine = await stage.engine("a", waits)
    await stage.load()
    other.router.state.directory.install(document([engine]), drained=set())
    there = Gossip(other.router.state, node="r2", post=lambda packet: None)
    here = Gossip(stage.router.state, node="r1", post=there.hear)
    here.start()
    there.start()

    def heard() -> float:
        endpoints = pool_router(other).snapshot(now=0.0)["endpoints"]
        return endpoints[0]["peers_requests"]

    asking = asyncio.create_task(stage.ask(chat()))
    await until(lambda: heard() == 1)
    going_on.set()
    assert (await asking).status == 200
    await until(lambda: heard() == 0)
    assert "r1" in pool_router(other).peers.nodes

    here.stop()
    assert pool_router(other).peers.nodes == []
    there.stop()
    await other.stop()


async def test_junk_and_packets_of_unknown_pools_are_survived(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    gossip = Gossip(stage.router.state, node="r1", post=lambda packet: None)

    gossip.hear(b"junk")
    gossip.hear(encode(Packet(node="r2", epoch=1, number=1, pool="unknown")))

    assert b'result="not understood"} 1.0' in stage.router.state.metrics.page()
