"""The decision API for others' proxies: reserve, refresh, release, and proxies that get lost."""

import asyncio
from typing import Any

import pytest

from routing.servers import clock, reservations
from tests.routing.servers.client import Answer
from tests.routing.servers.scripted import CHAT, SECRET, Stage, chat, key

OTHER = "sk-of-ben"
KEYS = [key("ana", SECRET, may_reserve=True), key("ben", OTHER)]
USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "cached_tokens": 4}


@pytest.fixture
async def pool(stage: Stage) -> Stage:
    await stage.engine("a")
    await stage.load(keys=KEYS)
    return stage


async def reserve(stage: Stage, *, secret: str = SECRET, **more: Any) -> Answer:
    body = {"path": CHAT, "body": chat(stream=True, max_tokens=50)} | more
    return await stage.ask(body, path="/v1/reserve", secret=secret)


async def release(stage: Stage, name: str, *, secret: str = SECRET, **more: Any) -> Answer:
    body = {"reservation": name, "outcome": "ok"} | more
    return await stage.ask(body, path="/v1/release", secret=secret)


def inflight(stage: Stage) -> int:
    return stage.leases_open


async def test_a_reservation_holds_a_lease_until_it_is_released(pool: Stage) -> None:
    reserved = await reserve(pool)
    name, during = reserved.json["reservation"], inflight(pool)

    released = await release(pool, name, usage=USAGE)
    again = await release(pool, name)

    assert reserved.json["destination"]["id"] == "a"
    assert reserved.json["destination"]["url"].startswith("http://127.0.0.1:")
    assert reserved.json["prefill"] is None
    assert reserved.json["decision"]["destination"] == "a"
    assert (during, released.status, inflight(pool)) == (1, 200, 0)
    assert (again.status, again.json["error"]["code"]) == (404, "no-reservation")
    (used,) = await pool.usage(1)
    assert (used["endpoint"], used["outcome"], used["delivered"]) == ("a", "ok", True)
    assert (used["prompt_tokens"], used["cached_tokens"], used["completion_tokens"]) == (12, 4, 3)


async def test_what_is_released_is_learned(pool: Stage) -> None:
    router = pool.router.state.directory.pools["main"].router
    guess = router.bytes_per_token("granite-4.1-8b")

    for _ in range(3):
        prompt = chat(stream=True, messages=[{"role": "user", "content": "A long one. " * 2500}])
        name = (await reserve(pool, body=prompt)).json["reservation"]
        body = {"reservation": name, "first_token": True, "tokens": 2}
        assert (await pool.ask(body, path="/v1/refresh")).status == 200
        await release(pool, name, usage=USAGE | {"prompt_tokens": 10_000})

    assert router.bytes_per_token("granite-4.1-8b") != guess
    assert all(one["ttft_seconds"] > 0 for one in await pool.usage(3))


async def test_a_failure_is_told_to_the_breaker(pool: Stage) -> None:
    name = (await reserve(pool)).json["reservation"]

    await release(pool, name, outcome="error", failure="connect")
    state = (await pool.admin("GET", "/admin/state")).json["pools"]["main"]

    assert state["endpoints"][0]["breaker"]["last_failure"] == "connect"
    assert (await pool.usage(1))[0]["outcome"] == "error"


async def test_only_an_end_of_the_reservation_can_have_failed(pool: Stage) -> None:
    name = (await reserve(pool)).json["reservation"]

    answer = await release(pool, name, failure="connect", failed_endpoint="other")

    assert (answer.status, answer.json["error"]["param"]) == (400, "failed_endpoint")
    assert inflight(pool) == 1


async def test_it_takes_a_key_that_may_and_its_own_reservation(pool: Stage) -> None:
    refused = await reserve(pool, secret=OTHER)
    name = (await reserve(pool)).json["reservation"]
    strange = await release(pool, name, secret=OTHER)
    without = await pool.ask({}, path="/v1/reserve", secret="sk-of-nobody")

    assert (refused.status, refused.json["error"]["code"]) == (403, "may-not-reserve")
    assert strange.status == 404
    assert without.status == 401
    assert inflight(pool) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/reserve", {"path": "/v1/nothing", "body": {}}),
        ("/v1/reserve", {"path": CHAT, "body": chat(), "ttl_seconds": 0.1}),
        ("/v1/reserve", {"path": CHAT, "body": chat(), "unknown": 1}),
        ("/v1/release", {"reservation": "x", "outcome": "fine"}),
        ("/v1/release", {"reservation": "x", "outcome": "ok", "usage": {"prompt_tokens": -1}}),
        ("/v1/refresh", b"\xff"),
    ],
)
async def test_what_cannot_be_read_is_refused(pool: Stage, path: str, body: Any) -> None:
    assert (await pool.ask(body, path=path)).status == 400
    assert inflight(pool) == 0


async def test_limits_hold_for_reservations(stage: Stage) -> None:
    await stage.engine("a")
    tenants = [{"tenant": "tenant-ana", "concurrency": 1}]
    await stage.load(keys=KEYS, tenants=tenants)

    first, second = await reserve(stage), await reserve(stage)
    await release(stage, first.json["reservation"])
    third = await reserve(stage)

    assert [answer.status for answer in (first, second, third)] == [200, 429, 200]


async def test_there_are_at_most_so_many(pool: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservations, "MOST", 2)

    answers = [await reserve(pool) for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[-1].headers["retry-after"]


@pytest.mark.parametrize(
    ("running", "is_ended"),
    [
        pytest.param(0, True, id="the-engine-has-nothing"),
        pytest.param(1, False, id="the-engine-is-at-work"),
        pytest.param(None, False, id="the-engine-says-nothing"),
    ],
)
async def test_a_lost_proxys_reservation_ends_when_the_engine_counts_fewer(
    pool: Stage, monkeypatch: pytest.MonkeyPatch, running: int | None, *, is_ended: bool
) -> None:
    name = (await reserve(pool, ttl_seconds=10.0)).json["reservation"]
    await pool.router._scraper.stop()
    router = pool.router.state.directory.pools["main"].router
    table = router._known.table
    table.running[0] = float("nan") if running is None else running
    table.waiting[0], table.observed_at[0] = 0.0, clock.monotonic() + 1.0
    pool_reservations = _reservations(pool)
    held = pool_reservations._held._held[name]

    held.refreshed_at -= 10.1
    pool_reservations._held.sweep()

    assert (len(pool_reservations), inflight(pool)) == ((0, 0) if is_ended else (1, 1))


@pytest.mark.parametrize(("running", "times"), [(None, 2.1), (1, 10.1)])
async def test_no_reservation_lasts_for_ever(
    pool: Stage, running: int | None, times: float
) -> None:
    name = (await reserve(pool, ttl_seconds=10.0)).json["reservation"]
    await pool.router._scraper.stop()
    table = pool.router.state.directory.pools["main"].router._known.table
    table.running[0] = float("nan") if running is None else running
    table.waiting[0] = 0.0
    held = _reservations(pool)._held._held[name]

    held.refreshed_at -= times * 10.0
    _reservations(pool)._held.sweep()

    assert inflight(pool) == 0
    (used,) = await pool.usage(1)
    assert (used["outcome"], used["token_source"]) == ("aborted", "none")


async def test_a_router_that_ends_closes_its_reservations(pool: Stage) -> None:
    await reserve(pool)
    leases = pool.router.state.directory.pools["main"].router

    await pool.router.stop()

    assert leases.leases_open == 0
    await asyncio.sleep(0)


def _reservations(stage: Stage) -> reservations.Reservations:
    handler = stage.router._public.handler
    return handler.reservations  # type: ignore[attr-defined]


async def test_a_refused_reservation_counts_as_one_answer(pool: Stage) -> None:
    await pool.load(version=2, keys=KEYS, tenants=[{"tenant": "tenant-ana", "is_suspended": True}])

    refused = await reserve(pool)

    assert (refused.status, refused.json["error"]["code"]) == (403, "quota-exhausted")
    counts = (await pool.admin("GET", "/admin/state")).json["requests"]
    assert (counts["total"], counts["by_status"]) == (1, {"403": 1})
