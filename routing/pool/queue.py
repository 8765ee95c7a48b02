"""Requests that wait in the router until the pool is less saturated: order, bounds, time limits.

Pure: the caller brings the time, asks for the head, prices it, and takes it out when it fits.
Bands are strict, highest priority first, with one exception: while higher bands are served, each
lower band that waits earns `trickle_share` of their tokens and gets a request through whenever it
has earned that request's tokens, so that batch traffic is slow but never starved. Inside a band
`routing.producers.fair_share` decides.

Bounds are counts and bytes of the pool and counts of a band. A full queue makes room for a request
by displacing sheddable ones (priority below 0) of lower priority, newest first. Every request that
was taken in leaves exactly once: released, refused, expired, cancelled or displaced.
"""

import heapq
import math
from collections.abc import Callable, Container, Hashable, Iterator
from itertools import takewhile
from typing import Any, Final

import msgspec

from routing.core.document import Admission, Band, PoolDocument
from routing.core.request import InferenceRequest
from routing.producers.fair_share import FairShare, Ticket, TicketState

DRAIN_MEMORY_SECONDS: Final = 10.0
"""Over this time the rate at which waiting tokens get through is averaged."""
_STALE: Final = 256


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request that came to the queue: a ticket, or the bound that it hit."""

    ticket: Ticket | None = None
    full: str = ""
    """The bound: `queue_requests`, `queue_bytes`, `band` or `sheddable`."""
    displaced: tuple[Ticket, ...] = ()
    """Requests that had to leave for it."""


class RequestQueue:
    """See the module. `apply` takes another document's bounds; nobody who waits is sent away."""

    def __init__(self, document: PoolDocument) -> None:
        self._bands: dict[int, FairShare] = {}
        self._credit: dict[int, float] = {}
        self._expiries: list[tuple[float, int, Ticket]] = []
        self._last = 0
        self.waiting = 0
        self.waiting_bytes = 0
        self.totals: dict[TicketState, int] = {}
        """How many left, by the way they left."""
        self._released: dict[int, Ticket] = {}
        """Those that got through and are inside the router, by the identity of their request."""
        self._drained = _Rate()
        self.apply(document)

    def apply(self, document: PoolDocument) -> None:
        """Take over bounds and shares; they hold for requests that come from now on."""
        self._admission: Admission = document.admission
        self._rules: dict[int, Band] = {band.priority: band for band in document.admission.bands}
        self._shares = {spec.tenant: spec.share for spec in document.tenants}
        self.is_open = document.admission.queue_requests > 0

    def __len__(self) -> int:
        return self.waiting

    def __iter__(self) -> Iterator[Ticket]:
        return (ticket for band in self._bands.values() for ticket in band)

    def offer(
        self,
        request: InferenceRequest,
        *,
        gate: Hashable,
        tokens: int,
        body_bytes: int,
        now: float,
    ) -> Offer:
        """Let a request wait, or say which bound is in the way."""
        priority = request.priority
        rule = self._rules.get(priority)
        most = rule.queue_requests if rule and rule.queue_requests is not None else None
        if priority < 0 and not most:
            return Offer(full="sheddable")
        if most is not None and len(self._bands.get(priority, ())) >= most:
            return Offer(full="band")
        full, victims = self._room_for(priority, body_bytes)
        if full:
            return Offer(full=full)
        for victim in victims:
            self._leave(victim, "displaced")
        return Offer(
            ticket=self._add(request, gate, tokens=tokens, body_bytes=body_bytes, now=now),
            displaced=tuple(victims),
        )

    def _room_for(self, priority: int, body_bytes: int) -> tuple[str, list[Ticket]]:
        """The bound that is in the way, or whom to displace."""
        bounds, victims = self._admission, []
        count, size = self.waiting, self.waiting_bytes + body_bytes
        sheddable = self._sheddable_below(priority)
        while count >= bounds.queue_requests or size > bounds.queue_bytes:
            victim = next(sheddable, None)
            if victim is None:
                full = "queue_requests" if count >= bounds.queue_requests else "queue_bytes"
                return full, []
            victims.append(victim)
            count, size = count - 1, size - victim.body_bytes
        return "", victims

    def _sheddable_below(self, priority: int) -> Iterator[Ticket]:
        for band in sorted(self._bands):
            if band < min(priority, 0):
                yield from self._bands[band].latest_first()

    def _add(
        self,
        request: InferenceRequest,
        gate: Hashable,
        *,
        tokens: int,
        body_bytes: int,
        now: float,
    ) -> Ticket:
        self._last += 1
        expires_at = now + self.longest_wait(request)
        due = request.arrived_at + (request.slo_ttft_seconds or math.inf)
        ticket = Ticket(
            request=request,
            gate=gate,
            tokens=max(1, tokens),
            body_bytes=body_bytes,
            offered_at=now,
            deadline=min(due, expires_at),
            expires_at=expires_at,
            number=self._last,
        )
        self._bands.setdefault(request.priority, FairShare()).add(ticket)
        heapq.heappush(self._expiries, (expires_at, ticket.number, ticket))
        self.waiting += 1
        self.waiting_bytes += body_bytes
        return ticket

    def longest_wait(self, request: InferenceRequest) -> float:
        """Seconds: the shortest of what pool, band and request say."""
        rule = self._rules.get(request.priority)
        limits = (
            self._admission.queue_seconds,
            rule.queue_seconds if rule else None,
            request.queue_seconds,
        )
        return max(0.0, min(limit for limit in limits if limit is not None))

    def must_wait(self, priority: int, gate: Hashable) -> bool:
        """Whether a request would overtake one that waits for the same endpoints."""
        return self.waiting > 0 and any(
            band >= priority and line.waits_at(gate) for band, line in self._bands.items()
        )

    def head(self, closed: Container[Hashable] = ()) -> Ticket | None:
        """Whose turn it is, among requests whose gate is not closed; `None` if nobody's."""
        first = None
        for band in sorted(self._bands, reverse=True):
            ticket = self._bands[band].head(closed)
            if ticket is None:
                continue
            if first is None:
                first = ticket
            elif self._credit.get(band, 0.0) >= ticket.tokens:
                return ticket
        return first

    def move(self, ticket: Ticket, gate: Hashable) -> None:
        """A request waits for other endpoints from now on."""
        self._bands[ticket.request.priority].move(ticket, gate)

    def regate(self, gate_of: Callable[[Ticket], Hashable]) -> None:
        """Everybody waits at the gate that `gate_of` says from now on."""
        for band in self._bands.values():
            band.regate(gate_of)

    def find(self, number: int) -> Ticket | None:
        """The ticket of a number, while it waits."""
        found = (band.find(number) for band in self._bands.values())
        return next((ticket for ticket in found if ticket is not None), None)

    def offered_before(self, moment: float, *, least_priority: int) -> Iterator[Ticket]:
        """Who waits since before a moment: by priority from the highest, the oldest first."""
        for priority in sorted(self._bands, reverse=True):
            if priority < least_priority:
                return
            yield from takewhile(lambda ticket: ticket.offered_at < moment, self._bands[priority])

    def release(self, ticket: Ticket, *, now: float) -> None:
        """The head got through."""
        priority = ticket.request.priority
        if self._credit.get(priority, 0.0) >= ticket.tokens:
            self._credit[priority] -= ticket.tokens
        self.passed(priority, ticket.tokens)
        self._drained.add(ticket.tokens, now=now)
        share = self._shares.get(ticket.request.tenant, 1.0)
        self._released[id(ticket.request)] = ticket
        ticket.state = "released"
        self._bands[priority].served(ticket, share=share)
        self._gone(ticket)

    def passed(self, priority: int, tokens: int) -> None:
        """Tokens of a priority got through: lower bands that wait earn their part."""
        if len(self._bands) < 2 and priority in self._bands:
            return
        for band, line in self._bands.items():
            head = line.head(()) if band < priority else None
            if head is not None:
                earned = self._credit.get(band, 0.0) + self._trickle(band) * tokens
                self._credit[band] = min(earned, float(head.tokens))

    def _trickle(self, band: int) -> float:
        if band < 0:
            return 0.0
        rule = self._rules.get(band)
        if rule is not None and rule.trickle_share is not None:
            return rule.trickle_share
        return self._admission.trickle_share

    def cancel(self, ticket: Ticket, state: TicketState = "cancelled") -> bool:
        """Its client left, or it is refused; False when it did not wait any more."""
        if ticket.state != "waiting":
            return False
        self._leave(ticket, state)
        return True

    def expire(self, *, now: float) -> list[Ticket]:
        """Requests whose wait is over; they have left."""
        expired = []
        while self._expiries and (
            self._expiries[0][0] <= now or self._expiries[0][2].state != "waiting"
        ):
            _, _, ticket = heapq.heappop(self._expiries)
            if ticket.state == "waiting":
                self._leave(ticket, "expired")
                expired.append(ticket)
        return expired

    def next_expiry(self) -> float:
        """When the next wait ends, at the latest; infinite when nobody waits."""
        return self._expiries[0][0] if self.waiting else math.inf

    def clear(self) -> list[Ticket]:
        """Everybody leaves, refused."""
        tickets = list(self)
        for ticket in tickets:
            self._leave(ticket, "refused")
        return tickets

    def use(self, request: InferenceRequest, tokens: int) -> None:
        """A request that had waited cost so many tokens: its tenant's clock is set right, once."""
        ticket = self._released.pop(id(request), None) if self._released else None
        band = None if ticket is None else self._bands.get(request.priority)
        if ticket is not None and band is not None:
            share = self._shares.get(request.tenant, 1.0)
            band.settle(request.tenant, tokens - ticket.tokens, share=share)

    def forget(self, request: InferenceRequest) -> None:
        """A request has left the router."""
        if self._released:
            self._released.pop(id(request), None)

    def seconds_until_turn(self, priority: int, *, now: float) -> float | None:
        """How long what waits before a priority needs at the present rate; `None` is unknown."""
        rate = self._drained.per_second(now=now)
        ahead = sum(line.tokens for band, line in self._bands.items() if band >= priority)
        return ahead / rate if rate > 0 else None

    def describe(self, *, now: float) -> dict[str, Any]:
        """JSON-able state: counts only, nobody's prompt."""
        bands = {
            str(priority): {
                "requests": len(line),
                "oldest_seconds": round(max(now - ticket.offered_at for ticket in line), 3),
            }
            for priority, line in sorted(self._bands.items(), reverse=True)
            if len(line)
        }
        return {
            "is_open": self.is_open,
            "requests": self.waiting,
            "bytes": self.waiting_bytes,
            "bands": bands,
            "totals": dict(self.totals),
            "tokens_per_second": round(self._drained.per_second(now=now), 3),
        }

    def _leave(self, ticket: Ticket, state: TicketState) -> None:
        ticket.state = state
        self._bands[ticket.request.priority].left(ticket)
        self._gone(ticket)

    def _gone(self, ticket: Ticket) -> None:
        priority = ticket.request.priority
        self.totals[ticket.state] = self.totals.get(ticket.state, 0) + 1
        self.waiting -= 1
        self.waiting_bytes -= ticket.body_bytes
        if not len(self._bands[priority]):
            self._credit.pop(priority, None)
            if len(self._bands) > len(self._rules) + 1:
                # A caller may invent priorities; clocks of odd ones are not kept.
                del self._bands[priority]
        if len(self._expiries) > 2 * self.waiting + _STALE:
            self._expiries = [entry for entry in self._expiries if entry[2].state == "waiting"]
            heapq.heapify(self._expiries)


class _Rate:
    """Tokens per second, forgotten exponentially."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._at = -math.inf

    def add(self, tokens: float, *, now: float) -> None:
        self._sum = self.per_second(now=now) * DRAIN_MEMORY_SECONDS + tokens
        self._at = now

    def per_second(self, *, now: float) -> float:
        if not self._sum:
            return 0.0
        faded = math.exp(-max(0.0, now - self._at) / DRAIN_MEMORY_SECONDS)
        return self._sum * faded / DRAIN_MEMORY_SECONDS
