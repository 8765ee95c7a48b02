"""Sheddable requests on the wire: refused, displaced, ended for others."""

import asyncio

import pytest

from tests.routing.servers.client import Answer
from tests.routing.servers.scripted import Stage
from tests.routing.servers.valves import GATE, Valve, ask, body, queued, stuffed, until


async def test_a_sheddable_request_is_refused_at_once_when_the_pool_is_saturated(
    stage: Stage, valve: Valve
) -> None:
    async with stuffed(stage, valve):
        answer = await stage.ask(body("shed"), x_consort_priority="-1")

    assert answer.status == 429
    assert answer.headers["x-llm-d-request-dropped-reason"] == "rejected-saturated"


async def test_a_higher_request_displaces_a_sheddable_one_that_waits(
    stage: Stage, valve: Valve
) -> None:
    bands = [{"priority": -1, "queue_requests": 5}]
    async with stuffed(stage, valve, admission=GATE | {"queue_requests": 1, "bands": bands}):
        [shed] = await queued(stage, "shed", x_consort_priority="-1")
        other = ask(stage, "other")
        answer = await shed
    await until(lambda: valve.arrived == 1)
    valve.let_all_go()

    assert answer.status == 429
    assert answer.headers["x-llm-d-request-dropped-reason"] == "rejected-saturated"
    assert (await other).status == 200


async def _evicted(stage: Stage, valve: Valve, *, is_stream: bool) -> tuple[Answer, Answer]:
    """A running sheddable request that has to go, and the request it goes for."""
    admission = GATE | {"evict_sheddable": True, "saturation_seconds": 0.05}
    await stage.load(admission=admission)
    shed = asyncio.create_task(stage.ask(body("shed", stream=is_stream), x_consort_priority="-1"))
    await until(lambda: valve.arrived == 1)
    if is_stream:
        # The prompt of a stream that began is done; what is short is the engine itself.
        await until(lambda: stage.leases_open == 1)
    pool = next(iter(stage.router.state.directory.pools.values()))
    pool.router._known.table.prefill_tokens[0] += 20_000
    [other] = await queued(stage, "other")
    answer = await shed
    pool.router._known.table.prefill_tokens[0] -= 20_000
    await until(lambda: valve.arrived == 2)
    valve.let_all_go()
    return answer, await other


async def test_a_running_sheddable_request_ends_for_one_that_starves(
    stage: Stage, valve: Valve
) -> None:
    shed, other = await _evicted(stage, valve, is_stream=False)

    assert shed.status == 429
    assert shed.headers["x-llm-d-request-dropped-reason"] == "evicted-priority"
    assert other.status == 200
    await stage.no_leases()
    assert valve.gone == 1
    used = await stage.usage(2)
    assert sorted((each["outcome"], each["status"]) for each in used) == [
        ("error", 429),
        ("ok", 200),
    ]


@pytest.mark.lesson("B10")
async def test_a_stream_that_is_evicted_ends_with_an_error_event(
    stage: Stage, valve: Valve
) -> None:
    shed, other = await _evicted(stage, valve, is_stream=True)

    assert shed.status == 200
    assert '"code":"pool-saturated"' in shed.events[-1]
    assert "priority" in shed.events[-1]
    assert other.status == 200
    await stage.no_leases()


async def test_nobody_is_evicted_unless_the_document_says_so(stage: Stage, valve: Valve) -> None:
    await stage.load(admission=GATE | {"saturation_seconds": 0.05})
    shed = asyncio.create_task(stage.ask(body("shed", stream=True), x_consort_priority="-1"))
    await until(lambda: valve.arrived == 1)
    pool = next(iter(stage.router.state.directory.pools.values()))
    pool.router._known.table.prefill_tokens[0] += 20_000

    other = await stage.ask(body("other"), x_llm_d_inference_ttl="300ms")
    pool.router._known.table.prefill_tokens[0] -= 20_000
    valve.let_all_go()

    assert other.status == 429
    assert (await shed).status == 200
