"""Fresh decode endpoints get an ordinary prompt before somebody's KV."""

import asyncio
from typing import Any

import pytest

from routing.servers import warming
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.scripted import (
    MODEL,
    Engine,
    Stage,
    answers,
    chat,
    status_script,
)

LONG = [{"role": "user", "content": "A long prompt. " * 2000}]
ROLES = {"p": "prefill", "d": "decode"}
WARMS = {"roles": ROLES, "disaggregation": {"warm_up": True}}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(warming, "LOOK_SECONDS", 0.02)


async def until_warm(stage: Stage) -> None:
    router = stage.router.state.directory.pools["main"].router
    async with asyncio.timeout(5):
        while router.warmth.cold():
            await asyncio.sleep(0.005)


async def test_a_decode_endpoint_is_warmed_once_and_pulls_afterwards(stage: Stage) -> None:
    prefill, decode = await stage.engine("p"), await stage.engine("d")
    await stage.load(**WARMS)

    await until_warm(stage)
    answer = await stage.ask(chat(messages=LONG))

    assert answer.status == 200
    first, pulled = decode.requests
    assert (first["model"], first["max_tokens"]) == (MODEL, 1)
    assert first["prompt"].count("warm ") >= 300
    assert "kv_transfer_params" in pulled
    assert len(prefill.requests) == 1


async def test_until_it_is_warm_prompts_are_computed_where_they_are_decoded(stage: Stage) -> None:
    held = asyncio.Event()

    async def warms_slowly(engine: Engine, received: HttpRequest, client: Connection) -> None:
        if b"warm-up" in received.headers[b"x-request-id"]:
            await held.wait()
        await answers(engine, received, client)

    prefill, decode = await stage.engine("p"), await stage.engine("d", warms_slowly)
    await stage.load(**WARMS)

    answer = await stage.ask(chat(messages=LONG))
    held.set()
    await until_warm(stage)

    assert answer.status == 200
    assert prefill.requests == []
    assert all("kv_transfer_params" not in body for body in decode.requests)


async def test_its_tokens_are_written_down_and_billed_to_nobody(stage: Stage) -> None:
    await stage.engine("p")
    await stage.engine("d")
    await stage.load(**WARMS)

    (used,) = await stage.usage(1)

    assert (used["tenant"], used["key_id"], used["endpoint"]) == ("consort", "warm-up", "d")
    assert (used["delivered"], used["outcome"], used["attempt"]) == (False, "ok", 1)
    assert (used["prompt_tokens"], used["completion_tokens"]) == (12, 3)


async def test_an_endpoint_that_fails_is_asked_again(stage: Stage) -> None:
    replies: list[Any] = [status_script(500), status_script(503), answers]

    async def recovers(engine: Engine, received: HttpRequest, client: Connection) -> None:
        await replies.pop(0)(engine, received, client)

    await stage.engine("p")
    decode = await stage.engine("d", recovers)
    await stage.load(**WARMS)

    await until_warm(stage)

    assert len(decode.requests) == 3
    assert len({body["prompt"] for body in decode.requests}) == 3


async def test_a_new_instance_is_warmed_again_and_others_are_not(stage: Stage) -> None:
    await stage.engine("p")
    decode = await stage.engine("d")
    await stage.load(**WARMS)
    await until_warm(stage)
    await stage.load(version=2, **WARMS)
    other = await stage.engine("e")

    await stage.load(version=3, roles=ROLES | {"e": "decode"}, disaggregation={"warm_up": True})
    await until_warm(stage)

    assert len(decode.requests) == len(other.requests) == 1


async def until_cold(stage: Stage) -> None:
    router = stage.router.state.directory.pools["main"].router
    async with asyncio.timeout(5):
        while not router.warmth.cold():
            await asyncio.sleep(0.005)


async def test_an_endpoint_that_was_down_is_warmed_before_it_pulls_again(stage: Stage) -> None:
    await stage.engine("p")
    first = await stage.engine("d")
    await stage.load(**WARMS)
    await until_warm(stage)
    await first.stop()

    await until_cold(stage)
    second = await stage.engine("d", port=first.port)
    await until_warm(stage)
    answer = await stage.ask(chat(messages=LONG))

    assert answer.status == 200
    assert ["kv_transfer_params" in body for body in second.requests] == [False, True]


async def test_one_that_starts_anew_just_after_it_was_warmed_is_warmed_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "LOOK_SECONDS", 0.3)
    await stage.engine("p")
    decode = await stage.engine("d")
    await stage.load(**WARMS)
    await until_warm(stage)

    stage.router.state.directory.pools["main"].router.warmth.out_of_reach("d")
    await until_warm(stage)

    assert len(decode.requests) == 2


async def test_a_pool_may_do_without(stage: Stage) -> None:
    await stage.engine("p")
    decode = await stage.engine("d")
    await stage.load(roles=ROLES)

    assert (await stage.ask(chat(messages=LONG))).status == 200

    assert ["kv_transfer_params" in body for body in decode.requests] == [True]
