"""Reading engines' metrics: it follows the documents and backs off."""

import asyncio
import json

import msgspec
import pytest

from routing.servers.http import Connection, HttpRequest
from tests.routing.servers.scripted import MODEL, Engine, Stage, document


async def until_scraped(stage: Stage, name: str, count: int) -> None:
    async with asyncio.timeout(10):
        while stage.engines[name].scrapes < count:
            await asyncio.sleep(0.01)


async def test_engines_of_a_document_are_read_again_and_again(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    await until_scraped(stage, "a", 2)

    (endpoint,) = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]["endpoints"]
    assert endpoint["running"] == 1
    assert endpoint["waiting"] is None
    assert endpoint["signal_age_seconds"] < 5


async def test_an_engine_that_left_the_document_is_not_read_any_more(stage: Stage) -> None:
    gone, kept = await stage.engine("a"), await stage.engine("b")
    await stage.load()
    await until_scraped(stage, "a", 1)
    stage.engines.pop("a")
    await stage.load(version=2)
    seen = gone.scrapes
    await until_scraped(stage, "b", kept.scrapes + 3)

    assert gone.scrapes <= seen + 1
    await gone.stop()


@pytest.mark.lesson("S03")
async def test_lesson_s03_an_engine_that_cannot_be_read_is_asked_less_often(stage: Stage) -> None:
    dead, alive = await stage.engine("dead"), await stage.engine("alive")
    await dead.stop()
    await stage.load()

    await until_scraped(stage, "alive", 4)

    page = (await stage.admin("GET", "/metrics")).body.decode()
    failed = next(
        line for line in page.splitlines() if 'result="failed"' in line and "_total" in line
    )
    assert 1 <= float(failed.split()[-1]) < alive.scrapes


@pytest.mark.lesson("S05")
async def test_adapters_that_are_loaded_and_idle_are_read_from_the_list_of_models(
    stage: Stage,
) -> None:
    async def lists_models(engine: Engine, received: HttpRequest, client: Connection) -> None:
        entries = [{"id": MODEL, "parent": None}, {"id": "support", "parent": MODEL}]
        client.respond(200, json.dumps({"object": "list", "data": entries}).encode())

    engine = await stage.engine("a", lists_models)
    engine.reads_json = False
    models = [
        {"name": MODEL, "max_model_len": 1000},
        {"name": "support", "max_model_len": 1000, "adapter_of": MODEL},
    ]
    await stage.load(models=models)
    router = stage.router.state.directory.pools["main"].router

    async with asyncio.timeout(10):
        while not router._known.table.instances[0].adapters.loaded:
            await asyncio.sleep(0.01)

    assert router._known.table.instances[0].adapters.loaded == {"support"}


async def test_a_pool_without_adapters_asks_nobody_for_its_models(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load()

    await until_scraped(stage, "a", 3)

    assert engine.requests == []


@pytest.mark.lesson("W19")
@pytest.mark.parametrize("status", [200, 404])
async def test_tokens_that_wait_are_read_where_an_engine_reports_them(
    stage: Stage, status: int
) -> None:
    asked = 0

    async def reports(engine: Engine, received: HttpRequest, client: Connection) -> None:
        nonlocal asked
        asked += 1
        assert received.path == "/v1/loads"
        client.respond(status, b'{"loads":[{"num_waiting_uncached_tokens":5000}]}')

    engine = await stage.engine("a", reports)
    engine.reads_json = False
    spec = msgspec.to_builtins(document([engine]).endpoints[0]) | {"engine": "sglang"}
    await stage.load(endpoints=[spec])

    await until_scraped(stage, "a", 4)

    table = stage.router.state.directory.pools["main"].router.caches.table
    if status == 200:
        assert table.others_tokens[0] == 5000
        assert asked >= 3
    else:
        assert table.others_tokens[0] != table.others_tokens[0]
        assert asked == 1
