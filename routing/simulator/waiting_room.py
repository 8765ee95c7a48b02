"""Requests that wait in the router. The order is the pool's queue; this drives it as a server does.

A release is one request at a time: it opens its lease, and only then the next one is priced. The
queue is looked at when capacity may have come free, and every `RECHECK_SECONDS`.
"""

from collections.abc import Callable
from typing import Protocol

from routing.core.decision import Decision, Refusal
from routing.core.request import InferenceRequest
from routing.pool.retries import PAUSE_SECONDS, RECHECK_SECONDS
from routing.pool.router import PoolRouter
from routing.pool.waiting import EVICTION, GATED
from routing.producers.fair_share import Ticket
from routing.simulator.clock import ARRIVAL, Clock

BYTES_PER_TOKEN = 4
"""Of a waiting body, in English; the queue's bound is in bytes."""

Decide = Callable[[InferenceRequest, float], Decision]


class Guest(Protocol):
    """Whoever waits, or runs and may be evicted."""

    request: InferenceRequest

    def go(self, decision: Decision, now: float) -> None:
        """Its turn has come; the decision is to be used at once."""

    def refuse(self, refusal: Refusal, now: float) -> None:
        """It waited in vain."""

    def cut(self, outcome: str, now: float) -> None:
        """It has to end for others."""


class WaitingRoom:
    """Of one router."""

    def __init__(self, clock: Clock, router: PoolRouter, decide: Decide) -> None:
        self._clock, self._router, self._decide = clock, router, decide
        self._queue = router.queue
        self._queue.on_capacity = self.stir
        self._waiting: dict[int, Guest] = {}
        self._tickets: dict[Guest, Ticket] = {}
        self._running: dict[Guest, None] = {}
        """Those that may be evicted."""
        self._is_stirred = self._is_armed = False
        self._quiet_until = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def takes(self, guest: Guest, decision: Decision, now: float) -> bool:
        """Let a request wait (or refuse it) if it has to; false when it may go as was decided."""
        refusal = decision.refusal
        if refusal is None:
            if not self._queue.must_wait(guest.request, decision.destination):
                self._may_be_evicted(guest)
                return False
        elif refusal.code != GATED[0]:
            return False
        # What it holds of its limits it holds while it waits.
        self._queue.reserve(guest.request, now=now)
        size = BYTES_PER_TOKEN * guest.request.parsed.prompt_tokens
        offered = self._queue.offer(
            guest.request, body_bytes=size, now=now, stopped=refusal, endpoint=decision.wanted
        )
        for ticket, why in offered.displaced:
            self._send_away(ticket, why, now)
        if offered.ticket is None:
            guest.refuse(offered.refusal or EVICTION, now)
            return True
        self._waiting[offered.ticket.number] = guest
        self._tickets[guest] = offered.ticket
        self._arm()
        return True

    def left(self, guest: Guest) -> None:
        """Its client has gone."""
        ticket = self._tickets.pop(guest, None)
        if ticket is not None:
            del self._waiting[ticket.number]
            if not self._queue.cancel(ticket):
                self.stir()

    def gone(self, guest: Guest) -> None:
        """It has ended, in whatever way."""
        if guest in self._running:
            del self._running[guest]
            self.stir()

    def stir(self) -> None:
        """Look at the queue soon, once for however many reasons."""
        if self._is_stirred or not self._waiting:
            return
        self._is_stirred = True
        self._clock.at(max(self._clock.now, self._quiet_until), self._look, priority=ARRIVAL)

    def _look(self, now: float) -> None:
        self._is_stirred = False
        for ticket, why in self._queue.expire(now=now):
            self._send_away(ticket, why, now)
        found = self._queue.release(now=now, decide=lambda ticket: self._choose(ticket, now))
        if found is None:
            self._quiet_until = now + PAUSE_SECONDS
            self._evict(now)
            self._arm()
            return
        ticket, decision = found
        guest = self._waiting.pop(ticket.number)
        del self._tickets[guest]
        self._may_be_evicted(guest)
        guest.go(decision, now)
        self.stir()

    def _choose(self, ticket: Ticket, now: float) -> Decision:
        return self._decide(self._waiting[ticket.number].request, now)

    def _arm(self) -> None:
        """See to it that somebody looks again, while anybody waits."""
        if not self._is_armed and self._waiting:
            self._is_armed = True
            self._clock.after(RECHECK_SECONDS, self._ring, priority=ARRIVAL)

    def _ring(self, now: float) -> None:
        self._is_armed = False
        self.stir()

    def _send_away(self, ticket: Ticket, why: Refusal, now: float) -> None:
        guest = self._waiting.pop(ticket.number)
        del self._tickets[guest]
        guest.refuse(why, now)

    # Eviction.

    def _may_be_evicted(self, guest: Guest) -> None:
        if guest.request.priority < 0 and self._router.document.admission.evict_sheddable:
            self._running[guest] = None

    def _evict(self, now: float) -> None:
        """End one running sheddable request when others starve."""
        if not self._running:
            return
        chosen = self._queue.victim((guest.request for guest in self._running), now=now)
        for guest in self._running:
            if guest.request is chosen:
                guest.cut(EVICTION.code, now)
                return
