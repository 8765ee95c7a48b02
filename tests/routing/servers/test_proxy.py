"""The embedded proxy against scripted engines: answers, streams, failures, clients that leave."""

import asyncio

import pytest

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import RawClient, message
from tests.routing.servers.scripted import (
    CHAT,
    SECRET,
    Engine,
    Script,
    Stage,
    answers,
    chat,
    hangs,
    streams_forever,
)

AUTHORIZED = {"authorization": f"Bearer {SECRET}"}


async def test_the_clients_key_stays_at_the_router(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load()

    await stage.ask(chat(), x_gateway_destination_endpoint="1.2.3.4:80", traceparent="00-1-2-01")

    headers = engine.headers[0]
    assert b"authorization" not in headers
    assert b"x-gateway-destination-endpoint" not in headers
    assert headers[b"traceparent"] == b"00-1-2-01"


@pytest.mark.lesson("S02")
@pytest.mark.parametrize(
    ("script", "is_stream"),
    [
        pytest.param(hangs, False, id="while-waiting"),
        pytest.param(hangs, True, id="before-the-first-token"),
        pytest.param(streams_forever, True, id="while-streaming"),
    ],
)
async def test_a_client_that_leaves_frees_the_engine_and_its_lease(
    stage: Stage, script: Script, *, is_stream: bool
) -> None:
    engine = await stage.engine("a", script)
    await stage.load()

    async with RawClient(stage.router.port) as client:
        await client.send(message("POST", CHAT, chat(stream=is_stream), headers=AUTHORIZED))
        if script is streams_forever:
            await client.head()
            await client.chunk()
        else:
            async with asyncio.timeout(5):
                while not engine.requests:
                    await asyncio.sleep(0.005)

    async with asyncio.timeout(5):
        await engine.gone.wait()
    await stage.no_leases()
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["status"]) == ("aborted", 499)
    if script is streams_forever:
        assert used["token_source"] == "counted_by_router"
        assert used["completion_tokens"] >= 1
    else:
        assert used["completion_tokens"] is None


async def test_a_kept_connection_that_the_engine_closed_is_replaced_unseen(stage: Stage) -> None:
    async def answer_and_close(engine: Engine, received: HttpRequest, client: Connection) -> None:
        await answers(engine, received, client)
        asyncio.get_running_loop().call_later(0.01, client.abort)

    await stage.engine("a", answer_and_close)
    await stage.load(limits={"attempts": 1})

    for _ in range(5):
        answer = await stage.ask(chat())
        assert answer.status == 200

    assert stage.router.state.requests.failed == 0


@pytest.mark.parametrize("size", [200_000, 5_000_000], ids=["200k", "5M"])
async def test_lesson_b01_large_bodies_come_through(stage: Stage, size: int) -> None:
    engine = await stage.engine("a")
    await stage.load(models=[{"name": "granite-4.1-8b", "max_model_len": 10_000_000}])
    text = "word " * (size // 5)

    answer = await stage.ask(chat(messages=[{"role": "user", "content": text}]))

    assert answer.status == 200, answer.body
    assert engine.requests[0]["messages"][0]["content"] == text


async def test_requests_beyond_the_routers_bound_are_refused(stage: Stage) -> None:
    engine = await stage.engine("a", hangs)
    await stage.load(limits={"concurrent_requests": 1})

    async with RawClient(stage.router.port) as client:
        await client.send(message("POST", CHAT, chat(), headers=AUTHORIZED))
        async with asyncio.timeout(5):
            while not engine.requests:
                await asyncio.sleep(0.005)
        answer = await stage.ask(chat())

    assert answer.status == 429
    assert answer.json["error"]["code"] == "router-busy"


async def test_a_refusal_is_accounted_with_its_tenant(stage: Stage) -> None:
    await stage.load()

    answer = await stage.ask(chat())

    assert (answer.status, answer.json["error"]["code"]) == (503, "no-capacity")
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["status"], used["tenant"]) == ("refused", 503, "tenant-ana")
    assert used["endpoint"] is None
    assert used["prompt_tokens"] is None


async def test_lesson_n01_a_storm_of_leaving_clients_leaves_nothing_behind(stage: Stage) -> None:
    engine = await stage.engine("a", streams_forever)
    await stage.load()

    async def leave_after(chunks: int) -> None:
        async with RawClient(stage.router.port) as client:
            await client.send(message("POST", CHAT, chat(stream=True), headers=AUTHORIZED))
            if chunks:
                await client.head()
            for _ in range(chunks):
                await client.chunk()

    await asyncio.gather(*(leave_after(number % 6) for number in range(150)))
    await stage.no_leases()

    # What stays open belongs to the scraper; every stream's own connection was cut.
    async with asyncio.timeout(5):
        while len(engine.server.connections) > 1:
            await asyncio.sleep(0.01)
    pool = stage.router.state.directory.pools["main"]
    assert pool.running == 0
    assert stage.router.state.requests.failed == 0
