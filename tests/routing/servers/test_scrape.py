"""Reading engines' metrics: it follows the documents and backs off."""

import asyncio

from tests.routing.servers.scripted import Stage


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
