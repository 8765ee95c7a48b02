"""The waiting requests of one pool in this process: futures, one timer, and who is told what.

The order is the pure queue's (`routing.pool.waiting`). A release is one request at a time: its task
runs, opens its lease, and only then the next one is priced, so that as many go as fit. The queue is
looked at when capacity may have come free and every `RECHECK_SECONDS`, since time alone drains
engines too; one timer serves all time limits.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from routing.core.decision import Decision, Refusal
from routing.core.request import InferenceRequest
from routing.pool import admission
from routing.pool.retries import PAUSE_SECONDS, RECHECK_SECONDS
from routing.pool.waiting import EVICTION
from routing.producers.fair_share import Ticket
from routing.servers import clock, deciding
from routing.servers.calls import Call
from routing.servers.documents import LoadedPool
from routing.servers.state import RouterState

SHUTTING_DOWN = Refusal(
    status=503,
    code="no-capacity",
    message="This router is shutting down.",
    retry_after_seconds=1.0,
    rule="draining",
    dropped_reason=admission.SHUTTING_DOWN,
)


@dataclass(slots=True, eq=False)
class _Waiting:
    call: Call
    future: asyncio.Future[Decision]


class Cancellable(Protocol):
    """What can be told to end."""

    def cancel(self) -> object:
        """End, not before the caller has gone on."""


@dataclass(slots=True, eq=False)
class Evictable:
    """A running sheddable request. What runs it is cancelled when it has to go."""

    request: InferenceRequest
    task: Cancellable
    is_evicted: bool = False


class WaitingRoom:
    """See the module; made when the first request of a pool comes."""

    def __init__(self, state: RouterState, pool: LoadedPool) -> None:
        self._state = state
        self._pool = pool
        self._queue = pool.router.queue
        self._queue.on_capacity = self.stir
        self._waiting: dict[int, _Waiting] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_stirred = False
        self._quiet_until = 0.0
        self.running: set[Evictable] = set()

    async def wait(self, call: Call, stopped: Decision) -> Decision:
        """Wait for a turn; the decision is to be used at once. It has a refusal when none came.

        `stopped` is the decision that the saturation gate, or the requests ahead, held up.
        """
        now, loop = clock.monotonic(), asyncio.get_running_loop()
        offered = self._queue.offer(
            call.request,
            body_bytes=len(call.body),
            now=now,
            stopped=stopped.refusal,
            endpoint=stopped.wanted,
        )
        for displaced, refusal in offered.displaced:
            self._resolve_refused(displaced, refusal)
        if offered.ticket is None:
            return deciding.refused(call, offered.refusal or SHUTTING_DOWN)
        ticket = offered.ticket
        waiting = self._waiting[ticket.number] = _Waiting(call, loop.create_future())
        self._arm()
        try:
            return await waiting.future
        except asyncio.CancelledError:
            if not self._queue.cancel(ticket):
                # Its turn had come, and another one can have it.
                self.stir()
            raise
        finally:
            self._waiting.pop(ticket.number, None)
            self._state.metrics.queue_wait(
                self._pool.document.pool, self._band(ticket), ticket.state
            ).observe(clock.monotonic() - now)

    def _band(self, ticket: Ticket) -> str:
        """Label of a band; callers may invent priorities, and each label costs memory."""
        priority = ticket.request.priority
        bands = self._pool.document.admission.bands
        is_known = priority == 0 or any(band.priority == priority for band in bands)
        return str(priority) if is_known else "other"

    def stir(self) -> None:
        """Look at the queue soon, once for however many reasons."""
        if self._is_stirred or not self._waiting:
            return
        self._is_stirred = True
        loop = asyncio.get_running_loop()
        pause = self._quiet_until - loop.time()
        if pause > 0:
            loop.call_later(pause, self._look)
        else:
            loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_stirred = False
        now = clock.monotonic()
        if self._state.is_draining:
            for ticket, refusal in self._queue.clear(SHUTTING_DOWN):
                self._resolve_refused(ticket, refusal)
            return
        for ticket, refusal in self._queue.expire(now=now):
            self._resolve_refused(ticket, refusal)
        found = self._queue.release(now=now, decide=self._choose)
        if found is None:
            self._quiet_until = asyncio.get_running_loop().time() + PAUSE_SECONDS
            self._evict(now=now)
            self._arm()
            return
        ticket, decision = found
        self._resolve(ticket, decision)
        # Behind the task just woken, which opens its lease before this looks again.
        self.stir()

    def _choose(self, ticket: Ticket) -> Decision:
        call = self._waiting[ticket.number].call
        return deciding.choose(self._state, call, now=clock.monotonic(), is_waiting=True)

    def _arm(self) -> None:
        """See to it that somebody looks again, while anybody waits."""
        if self._timer is not None or not self._waiting:
            return
        self._timer = asyncio.get_running_loop().call_later(RECHECK_SECONDS, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.stir()

    def _resolve_refused(self, ticket: Ticket, refusal: Refusal) -> None:
        waiting = self._waiting.get(ticket.number)
        if waiting is not None:
            self._resolve(ticket, deciding.refused(waiting.call, refusal))

    def _resolve(self, ticket: Ticket, decision: Decision) -> None:
        waiting = self._waiting.get(ticket.number)
        if waiting is not None and not waiting.future.done():
            waiting.future.set_result(decision)

    def _evict(self, *, now: float) -> None:
        """End one running sheddable request when others starve, and wait until it has ended."""
        if not self.running or any(one.is_evicted for one in self.running):
            return
        chosen = self._queue.victim((one.request for one in self.running), now=now)
        for one in self.running:
            if one.request is chosen:
                one.is_evicted = True
                one.task.cancel()
                self._state.metrics.refusal(
                    self._pool.document.pool, EVICTION.code, EVICTION.rule
                ).inc()
