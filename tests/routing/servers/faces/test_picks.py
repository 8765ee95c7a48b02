"""Decisions for requests that somebody else's proxy carries."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from routing.servers import clock
from routing.servers.attempt import Ending
from routing.servers.documents import Endpoint
from routing.servers.errors import ApiError
from routing.servers.faces import picks as module
from routing.servers.faces.picks import Pick, Picks, addresses
from routing.servers.http_parts import HttpRequest
from routing.servers.origin import Origin
from tests.routing.servers.scripted import CHAT, SECRET, Stage, chat, key

DONE = Ending(outcome="ok", status=200, delivered=True)


@pytest.fixture
async def pool(stage: Stage) -> Stage:
    await stage.engine("a")
    await stage.engine("b")
    await stage.load()
    return stage


def asked(body: dict[str, Any] | None = None, *, path: str = CHAT, **headers: str) -> HttpRequest:
    lines = {"authorization": f"Bearer {SECRET}"} | headers
    return HttpRequest(
        method="GET" if body is None else "POST",
        path=path,
        query="",
        headers={name.encode(): value.encode() for name, value in lines.items()},
        body=b"" if body is None else json.dumps(body).encode(),
    )


async def opened(picks: Picks, request: HttpRequest | None = None) -> Pick:
    return await picks.open(picks.read(request or asked(chat(stream=True, max_tokens=50))))


def of(stage: Stage) -> Picks:
    return Picks(stage.router.state)


async def test_a_pick_holds_a_lease_until_its_end_is_told(pool: Stage) -> None:
    pick = await opened(of(pool))
    during = pool.leases_open

    pick.first_token()
    pick.tokens(3)
    pick.finish(DONE)
    pick.finish(DONE)

    assert (during, pool.leases_open) == (1, 0)
    (used,) = await pool.usage(1)
    assert (used["outcome"], used["token_source"]) == ("ok", "counted_by_router")
    assert used["ttft_seconds"] > 0


async def test_a_pick_names_its_destination_and_fallbacks_by_address(pool: Stage) -> None:
    pick = await opened(of(pool))

    first, second = pick.endpoints

    assert {first.spec.id, second.spec.id} == {"a", "b"}
    assert first.spec.id == pick.decision.destination
    ports = [pool.engines[one.spec.id].port for one in (first, second)]
    assert addresses(pick.endpoints) == f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"
    pick.finish(DONE)


async def test_a_lease_moves_to_the_endpoint_that_served(pool: Stage) -> None:
    pick = await opened(of(pool))
    other = pick.endpoints[1]

    pick.served(str(other.origin))
    pick.served("192.0.2.1:80")
    endpoints = (await pool.admin("GET", "/admin/state")).json["pools"]["main"]["endpoints"]
    pick.finish(DONE)

    inflight = {one["id"]: one["inflight_requests"] for one in endpoints}
    assert inflight == {other.spec.id: 1, ({"a", "b"} - {other.spec.id}).pop(): 0}
    assert [used["endpoint"] for used in await pool.usage(1)] == [other.spec.id]
    assert pool.leases_open == 0


async def test_a_record_of_a_moved_request_tells_how_it_ended_and_where(pool: Stage) -> None:
    await pool.load(version=2, recording={"sample_rate": 1.0})
    pick = await opened(of(pool))
    name, other = pick.decision.id, pick.endpoints[1]

    pick.served(str(other.origin))
    pick.finish(DONE)

    record = pool.router.state.decisions.find(name)
    assert record is not None
    assert (record["outcome"]["outcome"], record["outcome"]["endpoint"]) == ("ok", other.spec.id)


async def test_an_unseen_end_is_concluded_from_the_engines_count(pool: Stage) -> None:
    picks = of(pool)
    for _ in range(3):
        (await opened(picks)).hold()
    await pool.router._scraper.stop()
    table = pool.router.state.directory.pools["main"].router._known.table
    # Two are at one endpoint, one at the other; the engines still have one each.
    table.running[:], table.waiting[:] = 1.0, 0.0
    table.observed_at[:] = clock.monotonic() + 1.0
    for held in picks._held._held.values():
        held.refreshed_at -= 1.1 * held.ttl

    picks._held.sweep()

    assert (len(picks), pool.leases_open) == (2, 2)
    (used,) = await pool.usage(1)
    assert (used["outcome"], used["token_source"], used["prompt_tokens"]) == ("ok", "none", None)


async def test_of_several_at_an_engine_only_as_many_end_as_it_misses(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    picks = of(stage)
    for _ in range(5):
        (await opened(picks)).hold()
    await stage.router._scraper.stop()
    table = stage.router.state.directory.pools["main"].router._known.table
    table.running[0], table.waiting[0] = 2.0, 1.0
    table.observed_at[0] = clock.monotonic() + 1.0
    for age, held in enumerate(picks._held._held.values()):
        held.refreshed_at -= (1.1 + age / 10) * held.ttl

    picks._held.sweep()

    assert sorted(picks._held._held) == ["1", "2", "3"]


async def test_what_began_after_the_reading_is_not_missed_in_it(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    picks = of(stage)
    (await opened(picks)).hold()
    await stage.router._scraper.stop()
    table = stage.router.state.directory.pools["main"].router._known.table
    table.running[0], table.waiting[0] = 0.0, 0.0
    table.observed_at[0] = clock.monotonic() - 0.2
    for held in picks._held._held.values():
        held.refreshed_at -= 1.5 * held.ttl

    picks._held.sweep()

    assert len(picks) == 1


async def test_the_pools_limit_counts_picks_inside_the_router_only(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(limits={"concurrent_requests": 1})
    picks = of(stage)
    first = await opened(picks)
    with pytest.raises(ApiError) as refused:
        await opened(picks)

    first.hold()
    (await opened(picks)).finish(DONE)

    assert (refused.value.status, refused.value.code) == (429, "router-busy")
    assert refused.value.dropped_reason == "rejected-saturated"


async def test_a_held_pick_keeps_its_tenants_limits(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(tenants=[{"tenant": "tenant-ana", "concurrency": 1}])
    picks = of(stage)
    (await opened(picks)).hold()

    with pytest.raises(ApiError) as refused:
        await opened(picks)
    picks._held.stop()
    (await opened(picks)).finish(DONE)

    assert refused.value.status == 429


async def test_held_picks_are_bounded(pool: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 2)
    picks = of(pool)

    for _ in range(4):
        (await opened(picks)).hold()

    assert (len(picks), pool.leases_open) == (2, 2)


async def test_a_gateway_that_leaves_while_waiting_leaves_nothing_behind(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(
        limits={"concurrent_requests": 8},
        tenants=[{"tenant": "tenant-ana", "concurrency": 1}],
    )
    picks = of(stage)
    task = asyncio.ensure_future(opened(picks))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    (await opened(picks)).finish(DONE)
    assert stage.router.state.directory.pools["main"].running == 0


async def test_the_list_of_models_goes_to_any_engine(pool: Stage) -> None:
    picks = of(pool)

    pick = await opened(picks, asked(path="/v1/models"))
    pick.finish(DONE)

    assert pick.attempt.endpoint is not None


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/models", {"authorization": "Bearer sk-of-nobody"}, 401),
        ("/v1/load_lora_adapter", {}, 404),
        ("/v1/nothing", {}, 404),
    ],
)
async def test_what_is_no_request_of_users_is_refused(
    pool: Stage, path: str, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(ApiError) as refused:
        of(pool).read(asked(path=path, **headers))
    assert refused.value.status == status


async def test_a_key_for_some_models_does_not_get_the_list_of_all(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(keys=[key("ana", SECRET, models=["granite-4.1-8b"])])

    with pytest.raises(ApiError) as refused:
        of(stage).read(asked(path="/v1/models"))
    assert refused.value.code == "models-not-listed"


async def test_a_host_name_is_refused_since_gateways_would_ignore_it(stage: Stage) -> None:
    await stage.engine("a")
    endpoint = await _endpoint_at(stage, "http://engine-a.example:8000")

    with pytest.raises(ApiError) as refused:
        addresses((endpoint,))
    assert refused.value.code == "address-not-numeric"


async def _endpoint_at(stage: Stage, url: str) -> Endpoint:
    await stage.load()
    known = stage.router.state.directory.pools["main"].endpoints["a"]
    spec = msgspec.structs.replace(known.spec, url=url)
    return Endpoint(spec=spec, origin=Origin.of(url), engine=known.engine)
