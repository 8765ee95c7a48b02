"""Let a call in: drain, limits, saturation gate, queue; and out again, once.

What a call holds of its tenant's and key's limits it holds from here until `leave`, over the wait
and all attempts. Whatever ends it (answer, error, client abort at any moment) passes `leave`.
"""

import asyncio
from typing import NoReturn

from routing.core.decision import Decision, Refusal
from routing.pool import admission
from routing.pool.waiting import EVICTION, GATED
from routing.servers import attempt as attempts
from routing.servers import clock, deciding
from routing.servers.attempt import CLIENT_GONE, Ending
from routing.servers.calls import Call
from routing.servers.errors import ApiError
from routing.servers.forwarding import Forwarding
from routing.servers.http import Connection
from routing.servers.state import RouterState
from routing.servers.waiting import SHUTTING_DOWN, Evictable, WaitingRoom

CLIENT_LEFT = Refusal(
    status=503,
    code="client-left",
    message="The client left while its request waited.",
    rule="client-left",
    dropped_reason=admission.CANCELLED,
)


async def admit(state: RouterState, call: Call) -> Decision:
    """The decision for the first attempt, to be used before anything else is awaited.

    It has a refusal when the call is not let in.
    """
    queue = call.pool.router.queue
    if state.is_draining:
        decision = deciding.refused(call, SHUTTING_DOWN)
        began_at = clock.monotonic()
    elif queue.is_open or len(queue):
        return await _through_queue(state, call)
    else:
        began_at = clock.monotonic()
        decision = deciding.choose(state, call, now=began_at)
    return _let_in(state, call, decision, began_at=began_at)


async def _through_queue(state: RouterState, call: Call) -> Decision:
    queue, request = call.pool.router.queue, call.request
    began_at = clock.monotonic()
    decision = deciding.choose(state, call, now=began_at)
    refusal = decision.refusal
    if refusal is None and not queue.must_wait(request, decision.destination):
        queue.passed(request)
    elif refusal is None or refusal.code == GATED[0]:
        # What it holds of its limits it holds while it waits.
        queue.reserve(request, now=began_at)
        decision = await _wait(state, call, decision)
        if decision.document_version != call.pool.document.version:
            decision = deciding.choose(state, call, now=clock.monotonic())
        # Waiting is no part of the time that a choice takes.
        began_at = decision.decided_at
    return _let_in(state, call, decision, began_at=began_at)


def _let_in(state: RouterState, call: Call, decision: Decision, *, began_at: float) -> Decision:
    decision = deciding.if_available(call, decision)
    pool, refusal = call.pool, decision.refusal
    deciding.note(state, decision, attempt=1, began_at=min(began_at, clock.monotonic()))
    if refusal is None:
        pool.router.queue.reserve(call.request, now=clock.monotonic())
    else:
        state.metrics.refusal(pool.document.pool, refusal.code, refusal.rule).inc()
    return decision


async def _wait(state: RouterState, call: Call, stopped: Decision) -> Decision:
    try:
        return await room_of(state, call).wait(call, stopped)
    except asyncio.CancelledError:
        attempt = attempts.begin(state, call, deciding.refused(call, CLIENT_LEFT), number=1)
        ending = Ending(outcome="aborted", status=CLIENT_GONE, delivered=True)
        attempts.finish(state, attempt, ending)
        raise


def room_of(state: RouterState, call: Call) -> WaitingRoom:
    """The waiting room of a call's pool."""
    name = call.pool.document.pool
    room = state.rooms.get(name)
    if room is None:
        room = state.rooms[name] = WaitingRoom(state, call.pool)
    return room


def leave(call: Call) -> None:
    """A call has ended; again, it does nothing."""
    call.pool.router.queue.settle(call.request)


async def run(state: RouterState, forwarding: Forwarding, client: Connection) -> None:
    """Forward a call that was let in; a sheddable one may be evicted, where the pool says so."""
    call = forwarding.call
    if call.request.priority >= 0 or not call.pool.document.admission.evict_sheddable:
        await forwarding.run()
        return
    task = asyncio.current_task()
    if task is None:
        raise ValueError("Requests run in tasks.")
    one, room = Evictable(call.request, task), room_of(state, call)
    room.running.add(one)
    try:
        await forwarding.run(when_cut=lambda: _account_of_cut(one, client))
    except asyncio.CancelledError:
        if not one.is_evicted:
            raise
        task.uncancel()
        _tell_evicted(call, client)
    finally:
        room.running.discard(one)
        room.stir()


def _account_of_cut(one: Evictable, client: Connection) -> Ending:
    """How the attempt of a cancelled task ended."""
    if not one.is_evicted:
        return Ending(outcome="aborted", status=CLIENT_GONE, delivered=True)
    return Ending(
        outcome="error", status=200 if client.answered else EVICTION.status, delivered=True
    )


def _tell_evicted(call: Call, client: Connection) -> None:
    """429 when nothing was sent yet (raised), else an error event ends the stream."""
    error = ApiError.of(EVICTION)
    if not client.answered:
        raise error
    client.send(error.event(call.request.path))
    client.close_stream()


def refuse(state: RouterState, call: Call, refusal: Refusal) -> NoReturn:
    """Refuse before any choice; it is accounted like a refused choice."""
    decision = deciding.refused(call, refusal)
    deciding.note(state, decision, attempt=1, began_at=clock.monotonic())
    state.metrics.refusal(decision.pool, refusal.code, refusal.rule).inc()
    attempt = attempts.begin(state, call, decision, number=1)
    ending = Ending(outcome="refused", status=refusal.status, delivered=True)
    attempts.finish(state, attempt, ending)
    raise ApiError.of(refusal)
