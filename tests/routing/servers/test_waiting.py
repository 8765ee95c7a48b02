"""The waiting room by itself: who looks when, and what a turn that nobody takes becomes."""

import asyncio
from typing import Any

import msgspec

from routing.core.decision import Decision
from routing.servers import clock, deciding, waiting
from routing.servers.calls import Call
from routing.servers.documents import LoadedPool
from routing.servers.waiting import SHUTTING_DOWN, WaitingRoom
from tests.routing.pool.builders import make_request
from tests.routing.servers.scripted import MODEL, Stage

REQUEST = make_request("x", model=MODEL)
GATE = {"queue_requests": 100, "saturation_seconds": 0.4, "queue_seconds": 20}


async def room_of(stage: Stage, **admission: Any) -> tuple[WaitingRoom, LoadedPool]:
    await stage.engine("a")
    await stage.load(admission=GATE | admission)
    pool = stage.router.state.directory.pools["main"]
    return WaitingRoom(stage.router.state, pool), pool


def call_of(pool: LoadedPool, **values: Any) -> Call:
    return Call(
        pool=pool,
        key=pool.document.keys[0],
        request=msgspec.structs.replace(REQUEST, **values),
        body=b"{}",
        received_at=0.0,
        trace_headers=b"",
        engine_id="e",
        target="/v1/chat/completions",
    )


def stuff(pool: LoadedPool, tokens: float) -> None:
    pool.router._known.table.prefill_tokens[0] += tokens


def enter(room: WaitingRoom, call: Call) -> asyncio.Task[Decision]:
    return asyncio.create_task(room.wait(call, deciding.refused(call, SHUTTING_DOWN)))


async def test_a_turn_whose_client_left_in_the_same_moment_goes_to_the_next(stage: Stage) -> None:
    room, pool = await room_of(stage)
    stuff(pool, 20_000)
    first, second = enter(room, call_of(pool, id="1")), enter(room, call_of(pool, id="2"))
    await asyncio.sleep(0)
    stuff(pool, -20_000)

    room._look()
    first.cancel()
    decision = await asyncio.wait_for(second, 5)

    assert first.cancelled() or first.cancelling()
    assert decision.destination == "a"
    assert len(pool.router.queue) == 0


async def test_what_a_replay_needs_is_not_collected_at_each_look_in_vain(stage: Stage) -> None:
    room, pool = await room_of(stage)
    await stage.load(version=2, admission=GATE, recording={"sample_rate": 0.0})
    stuff(pool, 20_000)
    call, state = call_of(pool), stage.router.state

    stopped = deciding.choose(state, call, now=clock.monotonic())
    task = enter(room, call)
    await asyncio.sleep(0)
    ticket = next(iter(pool.router.queue.order))
    looked = room._choose(ticket)
    task.cancel()

    assert stopped.refusal is not None
    assert looked.refusal is not None
    assert stopped.inputs is not None
    assert looked.inputs is None


async def test_many_reasons_to_look_are_one_look_and_a_look_in_vain_is_followed_by_a_pause(
    stage: Stage,
) -> None:
    room, pool = await room_of(stage)
    stuff(pool, 20_000)
    task = enter(room, call_of(pool))
    await asyncio.sleep(0)
    looks, loop, before = 0, asyncio.get_running_loop(), room._choose

    def counted(ticket: Any) -> Decision:
        nonlocal looks
        looks += 1
        return before(ticket)

    room._choose = counted  # type: ignore[method-assign]
    until = loop.time() + 0.2
    while loop.time() < until:
        for _ in range(20):
            room.stir()
        await asyncio.sleep(0)
    stuff(pool, -20_000)
    await asyncio.wait_for(task, 5)

    assert 1 <= looks <= 0.2 / waiting.PAUSE_SECONDS + 20


async def test_an_empty_room_keeps_no_timer(stage: Stage) -> None:
    room, pool = await room_of(stage)
    stuff(pool, 20_000)
    task = enter(room, call_of(pool, queue_seconds=0.05))

    decision = await asyncio.wait_for(task, 5)
    await asyncio.sleep(3 * waiting.RECHECK_SECONDS)

    assert decision.refusal is not None
    assert decision.refusal.rule == "queue:ttl"
    assert room._timer is None
    assert room._waiting == {}
