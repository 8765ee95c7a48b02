"""Attempts before the first byte: who is tried next, and when nobody is."""

import asyncio

import pytest

from tests.routing.servers.scripted import (
    Script,
    Stage,
    chat,
    cuts,
    hangs,
    status_script,
)

FAILURES: list[tuple[str, Script]] = [
    ("connection-cut", cuts),
    ("500", status_script(500)),
    ("503", status_script(503)),
    ("502", status_script(502)),
]


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in FAILURES])
async def test_before_the_first_byte_another_endpoint_is_tried(
    stage: Stage, script: Script, *, is_stream: bool
) -> None:
    bad, good = await stage.engine("bad", script), await stage.engine("good")
    await stage.load()

    answers_got = [await stage.ask(chat(stream=is_stream)) for _ in range(2)]

    assert [answer.status for answer in answers_got] == [200, 200]
    assert all(b"good" in answer.body for answer in answers_got)
    assert bad.requests
    assert len(good.requests) == 2
    used = await stage.usage(2 + len(bad.requests))
    failed = [one for one in used if one["outcome"] == "error"]
    assert [(one["endpoint"], one["delivered"]) for one in failed] == [("bad", False)] * len(failed)
    assert stage.leases_open == 0


async def test_a_refused_connection_goes_to_another_endpoint(stage: Stage) -> None:
    dead, _ = await stage.engine("dead"), await stage.engine("good")
    await stage.load()
    await dead.stop()

    answers_got = [await stage.ask(chat()) for _ in range(3)]

    assert [answer.status for answer in answers_got] == [200] * 3


async def test_an_engine_that_says_nothing_in_time_is_left(stage: Stage) -> None:
    silent, _ = await stage.engine("silent", hangs), await stage.engine("good")
    limits = {"attempts": 3, "first_token_timeout_seconds": 0.5, "stall_timeout_seconds": 0.5}
    await stage.load(limits=limits)

    answers_got = [await stage.ask(chat(stream=True)) for _ in range(2)]

    assert [answer.status for answer in answers_got] == [200, 200]
    async with asyncio.timeout(5):
        await silent.gone.wait()


@pytest.mark.lesson("F01")
async def test_a_clients_mistake_is_passed_on_and_not_tried_elsewhere(stage: Stage) -> None:
    body = b'{"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}'
    engine = await stage.engine("a", status_script(400, body))
    other = await stage.engine("b", status_script(400, body))
    await stage.load()

    answer = await stage.ask(chat(stream=True))

    assert (answer.status, answer.body) == (400, body)
    assert len(engine.requests) + len(other.requests) == 1
    state = (await stage.admin("GET", "/admin/state")).json
    breakers = [one["breaker"]["state"] for one in state["pools"]["main"]["endpoints"]]
    assert breakers == ["closed", "closed"]


@pytest.mark.lesson("F01")
@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 429])
async def test_no_number_of_clients_mistakes_opens_a_breaker(stage: Stage, status: int) -> None:
    engine = await stage.engine("a", status_script(status))
    await stage.load()

    statuses = [(await stage.ask(chat())).status for _ in range(12)]

    assert statuses == [status] * 12
    assert len(engine.requests) == 12


@pytest.mark.lesson("F03", "F04")
@pytest.mark.parametrize("policy", ["consort", "session-hash", "sglang-cache-aware"])
async def test_affinity_does_not_pick_a_dead_endpoint_again(stage: Stage, policy: str) -> None:
    engines = {name: await stage.engine(name) for name in ("a", "b")}
    await stage.load(policy={"name": policy})
    long = chat(messages=[{"role": "user", "content": "One long prefix. " * 500}])
    for _ in range(3):
        await stage.ask(long, x_session_id="one")
    (home,) = [engine for engine in engines.values() if engine.requests]
    other = engines["b" if home.name == "a" else "a"]
    await home.stop()

    statuses = [(await stage.ask(long, x_session_id="one")).status for _ in range(10)]

    assert statuses == [200] * 10
    assert len(other.requests) == 10
    tried = [one for one in await stage.usage(14) if one["endpoint"] == home.name]
    assert [one["outcome"] for one in tried] == ["ok"] * 3 + ["error"]


@pytest.mark.lesson("F04")
async def test_retries_end_with_the_time_for_a_first_token(stage: Stage) -> None:
    engines = [await stage.engine(name, hangs) for name in ("a", "b", "c", "d")]
    limits = {"attempts": 4, "first_token_timeout_seconds": 0.3, "stall_timeout_seconds": 0.3}
    await stage.load(limits=limits)

    answer = await stage.ask(chat(stream=True))

    assert answer.status == 503
    assert sum(len(engine.requests) for engine in engines) == 2
    assert stage.leases_open == 0


async def test_when_all_fail_the_last_engines_answer_is_passed_on(stage: Stage) -> None:
    await stage.engine("a", status_script(500, b'{"error":{"message":"CUDA"}}'))
    await stage.load()

    answer = await stage.ask(chat())

    assert (answer.status, answer.json) == (500, {"error": {"message": "CUDA"}})
    assert stage.router.state.requests.failed == 1


async def test_when_nobody_can_be_reached_the_router_says_so(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load()
    await engine.stop()

    answer = await stage.ask(chat())

    assert answer.status == 503
    assert answer.json["error"]["code"] == "no-capacity"
    assert answer.headers["retry-after"]


async def test_a_request_that_ran_out_of_time_for_retries_has_one_answer_in_its_accounts(
    stage: Stage,
) -> None:
    for name in "abc":
        await stage.engine(name, hangs)
    limits = {"attempts": 3, "first_token_timeout_seconds": 0.4, "stall_timeout_seconds": 0.4}
    await stage.load(limits=limits)

    answer = await stage.ask(chat(stream=True))

    assert answer.status == 503
    used = await stage.usage(2)
    assert [one["delivered"] for one in used] == [False, True]
    assert (await stage.admin("GET", "/admin/state")).json["requests"]["total"] == 1
