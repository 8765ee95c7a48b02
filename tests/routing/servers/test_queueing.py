"""Requests that wait in a router that runs: let in as capacity frees, refused, left."""

import asyncio

import pytest

from tests.routing.servers.client import RawClient, message, request
from tests.routing.servers.scripted import CHAT, SECRET, Stage, chat, key
from tests.routing.servers.valves import (
    GATE,
    Valve,
    ask,
    body,
    grants,
    queued,
    stuffed,
    until,
    waiting,
)


async def test_a_request_waits_while_the_pool_is_saturated_and_then_goes(
    stage: Stage, valve: Valve
) -> None:
    async with stuffed(stage, valve):
        [task] = await queued(stage, "one")
        arrived = valve.arrived
    await until(lambda: valve.arrived == 1)
    valve.let_all_go()
    answer = await task

    assert arrived == 0
    assert answer.status == 200
    await stage.no_leases()
    assert (waiting(stage), grants(stage)) == (0, 0)


async def test_capacity_lets_in_as_many_as_fit_not_the_herd(stage: Stage, valve: Valve) -> None:
    async with stuffed(stage, valve):
        tasks = await queued(stage, *(f"q{number}" for number in range(10)))
    pool = next(iter(stage.router.state.directory.pools.values()))
    most = 0

    async with asyncio.timeout(8):
        while not all(task.done() for task in tasks):
            most = max(most, int(pool.router._known.table.prefill_requests[0]))
            valve.let_all_go()
            await asyncio.sleep(0.001)

    assert {task.result().status for task in tasks} == {200}
    assert most <= 3
    assert valve.order == [f"q{number}" for number in range(10)]


async def test_higher_priorities_go_first(stage: Stage, valve: Valve) -> None:
    async with stuffed(stage, valve):
        low = await queued(stage, "low1", "low2")
        high = await queued(stage, "high", x_consort_priority="5")
    async with asyncio.timeout(8):
        while not all(task.done() for task in (*low, *high)):
            valve.let_all_go()
            await asyncio.sleep(0.001)

    assert valve.order == ["high", "low1", "low2"]


async def test_a_full_queue_is_429_with_the_reason_and_the_time_to_come_back(
    stage: Stage, valve: Valve
) -> None:
    async with stuffed(stage, valve, admission=GATE | {"queue_requests": 1}):
        [task] = await queued(stage, "one")
        refused = await stage.ask(body("two"))
        state = (await stage.admin("GET", "/admin/state")).json
    valve.let_all_go()
    await until(lambda: valve.arrived == 1)
    valve.let_all_go()
    await task

    assert refused.status == 429
    assert refused.json["error"]["code"] == "pool-saturated"
    assert refused.headers["x-llm-d-request-dropped-reason"] == "rejected-saturated"
    assert int(refused.headers["retry-after"]) >= 1
    assert state["pools"]["main"]["queue"]["requests"] == 1


@pytest.mark.lesson("T03")
async def test_a_wait_that_is_over_is_429_and_gives_everything_back(
    stage: Stage, valve: Valve
) -> None:
    tenants = [{"tenant": "tenant-ana", "concurrency": 5}]
    async with stuffed(stage, valve, tenants=tenants):
        answer = await stage.ask(body("late"), x_llm_d_inference_ttl="100ms")

        assert answer.status == 429
        assert answer.headers["x-llm-d-request-dropped-reason"] == "rejected-ttl-expired"
        assert (waiting(stage), grants(stage), stage.leases_open) == (0, 0, 0)
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["status"], used["endpoint"]) == ("refused", 429, None)


async def test_a_wait_that_is_over_in_an_empty_pool_is_503(stage: Stage, valve: Valve) -> None:
    async with stuffed(stage, valve):
        task = ask(stage, "late", x_llm_d_inference_ttl="200ms")
        await until(lambda: waiting(stage) == 1)
        await stage.engines.pop("a").stop()
        await stage.load(version=2, admission=GATE)
        answer = await task

    assert answer.status == 503
    assert answer.headers["x-llm-d-request-dropped-reason"] == "rejected-no-endpoints"


async def test_an_empty_pool_is_503_at_once(stage: Stage) -> None:
    await stage.load(admission=GATE)

    answer = await stage.ask(body("one"))

    assert answer.status == 503
    assert answer.headers["x-llm-d-request-dropped-reason"] == "rejected-no-endpoints"


@pytest.mark.lesson("S02")
async def test_a_client_that_leaves_while_it_waits_holds_nothing(
    stage: Stage, valve: Valve
) -> None:
    tenants = [{"tenant": "tenant-ana", "concurrency": 5, "tokens_per_minute": 10_000_000}]
    async with stuffed(stage, valve, tenants=tenants):
        async with RawClient(stage.router.port) as client:
            headers = {"authorization": f"Bearer {SECRET}"}
            await client.send(message("POST", CHAT, body("leaves"), headers=headers))
            await until(lambda: waiting(stage) == 1)
            held = grants(stage)
        await until(lambda: waiting(stage) == 0)
        await until(lambda: grants(stage) == 0)
        pool = next(iter(stage.router.state.directory.pools.values()))
        left = pool.router.queue.rates_left("tenant-ana", "key-ana", now=0.0)[1]

        assert held == 1
        assert pool.running == 0
        assert left is not None
        assert left.remaining == left.limit
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["status"]) == ("aborted", 499)
    assert valve.arrived == 0


@pytest.mark.lesson("S02")
async def test_clients_that_come_and_go_in_any_order_leave_nothing(
    stage: Stage, valve: Valve
) -> None:
    async with stuffed(stage, valve):
        tasks = await queued(stage, *(f"q{number}" for number in range(12)))
        for task in tasks[::2]:
            task.cancel()
    async with asyncio.timeout(8):
        while not all(task.done() for task in tasks):
            valve.let_all_go()
            await asyncio.sleep(0.002)

    await stage.no_leases()
    assert {task.result().status for task in tasks[1::2]} == {200}
    assert (waiting(stage), grants(stage)) == (0, 0)
    pool = next(iter(stage.router.state.directory.pools.values()))
    await until(lambda: pool.running == 0)
    assert len(pool.router.queue.order._released) == 0


async def test_a_router_that_shuts_down_sends_who_waits_away(stage: Stage, valve: Valve) -> None:
    async with stuffed(stage, valve):
        [task] = await queued(stage, "one")
        stage.router.state.is_draining = True
        answer = await task
        late = await stage.ask(body("late"))

    assert (answer.status, late.status) == (503, 503)
    assert answer.headers["x-llm-d-request-dropped-reason"] == "rejected-shutting-down"
    assert late.headers["x-llm-d-request-dropped-reason"] == "rejected-shutting-down"


async def test_another_document_moves_who_waits_to_its_endpoints(
    stage: Stage, valve: Valve
) -> None:
    async with stuffed(stage, valve):
        [task] = await queued(stage, "one")
        await stage.engine("b")
        await stage.load(version=2, admission=GATE, policy={"name": "consort"})
        answer = await task

    assert answer.status == 200
    assert len(stage.engines["b"].requests) == 1


async def test_waits_and_refusals_are_measured(stage: Stage, valve: Valve) -> None:
    async with stuffed(stage, valve):
        await stage.ask(body("late"), x_llm_d_inference_ttl="50ms", x_consort_priority="77")
        [task] = await queued(stage, "one")
        during = (await stage.admin("GET", "/metrics")).body.decode()
        task.cancel()
        await until(lambda: waiting(stage) == 0)

    page = (await stage.admin("GET", "/metrics")).body.decode()
    assert 'consort_queue_requests{pool="main"} 1.0' in during
    assert 'consort_queue_requests{pool="main"} 0.0' in page
    assert (
        'consort_queue_wait_seconds_count{pool="main",priority="other",result="expired"} 1.0'
        in page
    )
    assert (
        'consort_queue_wait_seconds_count{pool="main",priority="0",result="cancelled"} 1.0' in page
    )
    assert 'consort_refusals_total{code="pool-saturated",pool="main",rule="queue:ttl"} 1.0' in page


async def test_without_a_queue_nothing_waits(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    answer = await stage.ask(body("one"))

    assert answer.status == 200
    assert stage.router.state.rooms == {}


async def test_a_suspended_tenant_is_403(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(tenants=[{"tenant": "tenant-ana", "is_suspended": True}])

    answer = await stage.ask(chat())

    assert (answer.status, answer.json["error"]["code"]) == (403, "quota-exhausted")


async def test_limits_of_a_key_hold_on_the_wire_and_are_told(stage: Stage) -> None:
    await stage.engine("a")
    keys = [key("ana", SECRET, requests_per_second=2, tokens_per_minute=6000)]
    await stage.load(keys=keys)

    first = await stage.ask(chat(max_tokens=5))
    streamed = await stage.ask(chat(max_tokens=5, stream=True))
    third = await stage.ask(chat(max_tokens=5))

    assert first.headers["x-ratelimit-limit-requests"] == "2"
    assert first.headers["x-ratelimit-remaining-requests"] == "1"
    assert first.headers["x-ratelimit-limit-tokens"] == "6000"
    assert int(first.headers["x-ratelimit-remaining-tokens"]) < 6000
    assert streamed.headers["x-ratelimit-remaining-requests"] == "0"
    assert (third.status, third.json["error"]["code"]) == (429, "rate-limited")
    assert third.headers["x-ratelimit-remaining-requests"] == "0"
    assert third.headers["retry-after"]
    assert "x-llm-d-request-dropped-reason" not in third.headers


async def test_the_wait_is_no_part_of_the_time_that_a_decision_takes(
    stage: Stage, valve: Valve
) -> None:
    async with stuffed(stage, valve):
        [task] = await queued(stage, "one")
        await asyncio.sleep(0.5)
    await until(lambda: valve.arrived == 1)
    valve.let_all_go()
    await task

    page = (await request(stage.router.admin_port, "GET", "/metrics")).body.decode()
    sums = [line for line in page.splitlines() if line.startswith("consort_decision_seconds_sum")]
    assert len(sums) == 1
    assert float(sums[0].rpartition(" ")[2]) < 0.4
