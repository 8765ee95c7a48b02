"""Attempts that somebody else's proxy carries, until their end is known."""

import json

import pytest

from routing.servers import attempt as attempts
from routing.servers import calls, clock, held
from routing.servers.attempt import Attempt, Ending
from routing.servers.errors import ApiError
from routing.servers.held import LOST, Held, HeldAttempts
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.scripted import CHAT, SECRET, Stage, chat


async def begin(stage: Stage) -> Attempt:
    body = json.dumps(chat()).encode()
    headers = {b"authorization": f"Bearer {SECRET}".encode()}
    request = HttpRequest(method="POST", path=CHAT, query="", headers=headers, body=body)
    call = calls.read_call(stage.router.state, request, path=CHAT, body=body)
    return await held.begin(stage.router.state, call)


def hold(kept: HeldAttempts, attempt: Attempt, name: str) -> Held:
    now = clock.monotonic()
    one = Held(
        attempt=attempt, key_id="key-ana", quiet=10.0, ttl=10.0, when_silent=LOST, refreshed_at=now
    )
    kept.hold(name, one)
    return one


async def test_a_body_is_not_kept(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    attempt = await begin(stage)

    assert (attempt.call.body, stage.leases_open) == (b"", 1)
    attempts.finish(stage.router.state, attempt, Ending(outcome="ok", status=200, delivered=True))


async def test_a_refused_call_is_accounted_for_and_holds_nothing(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(tenants=[{"tenant": "tenant-ana", "is_suspended": True}])

    with pytest.raises(ApiError) as refused:
        await begin(stage)

    assert (refused.value.status, refused.value.is_counted) == (403, True)
    assert [one["outcome"] for one in await stage.usage(1)] == ["refused"]


async def test_to_make_room_the_one_held_for_longest_ends(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    kept = HeldAttempts(stage.router.state, sweep_seconds=1.0)
    for name in ("first", "second"):
        hold(kept, await begin(stage), name)

    kept.end_oldest()

    assert (kept.get("first"), stage.leases_open) == (None, 1)
    assert kept.get("second") is not None


async def test_what_is_open_when_the_router_ends_is_closed(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    kept = HeldAttempts(stage.router.state, sweep_seconds=1.0)
    hold(kept, await begin(stage), "one")

    await stage.router.stop()

    assert (len(kept), stage.leases_open) == (0, 0)


async def test_a_lease_that_is_closed_already_ends_in_silence(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    kept = HeldAttempts(stage.router.state, sweep_seconds=1.0)
    one = hold(kept, await begin(stage), "one")
    await stage.router._scraper.stop()
    attempts.end_lease(one.attempt)

    one.refreshed_at -= 10.1
    kept.sweep()

    assert len(kept) == 0
