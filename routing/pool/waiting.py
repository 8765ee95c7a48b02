"""When a request has to wait in the router, when it may go, and what ends its wait otherwise.

A request waits either for the pool, or for the endpoint that was chosen for it and whose batch has
no room: those that wait for another one are not held up.

The queue knows order and bounds; this is where it meets the saturation gate and the limits. A
driver offers what the gate stopped, asks for releases whenever capacity may have come free, begins
the lease of each release before it asks for the next (so that as many go as fit, never a herd), and
ends what expired.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, Protocol

import msgspec

from routing.core.decision import Decision, Refusal
from routing.core.document import PoolDocument
from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.pool import admission
from routing.pool.choosing_again import ChoosingAgain, Gate, endpoint_of
from routing.pool.eligibility import Residency, residency_of
from routing.pool.knowledge import Knowledge
from routing.pool.queue import RequestQueue
from routing.producers.fair_share import Ticket
from routing.producers.tenants import Grant, Remaining

GATED: Final = ("pool-saturated", "no-capacity")
"""Refusals that a waiting request may outlive: endpoints drain, recover and are added."""
_FULL: Final = {
    "queue_requests": "the queue holds as many requests as it may",
    "queue_bytes": "the queue holds as many bytes as it may",
    "band": "the queue holds as many requests of this priority as it may",
    "sheddable": "requests of this priority do not wait",
    "displaced": "this request had to leave the queue for one of higher priority",
}

Decide = Callable[[Ticket], Decision]
MOST_LOOKS: Final = 32
"""Requests that are priced in one search for one that may go; the next one goes on behind them."""


class _Decider(Protocol):
    def __call__(self, request: InferenceRequest, *, now: float) -> Decision: ...


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """Either a ticket or the refusal; `displaced` are those that had to leave for it."""

    ticket: Ticket | None
    refusal: Refusal | None
    displaced: tuple[tuple[Ticket, Refusal], ...]


class _Closed:
    """Gates that nobody gets through at present, as a container."""

    def __init__(self, endpoints: frozenset[str], gates: set[Hashable]) -> None:
        self.gates = gates
        self._endpoints = endpoints

    def __contains__(self, gate: object) -> bool:
        return gate in self.gates or (isinstance(gate, tuple) and gate[1] in self._endpoints)


class WaitingRequests:
    """See the module; one per pool."""

    def __init__(self, known: Knowledge, decide: "_Decider") -> None:
        self._known = known
        self._decide = decide
        self._queue = RequestQueue(known.document)
        self._grants: dict[int, Grant] = {}
        """What leases hold of limits themselves, for want of a `reserve` before, by number."""
        self._looked_at: set[Hashable] = set()
        """Gates of searches that ended before all were looked at."""
        self._again = ChoosingAgain(self._queue)
        self.on_capacity: Callable[[], None] = _nothing
        """Called while requests wait, whenever one of them may fit."""

    def __len__(self) -> int:
        return self._queue.waiting

    @property
    def is_open(self) -> bool:
        """Whether the document lets requests wait."""
        return self._queue.is_open

    @property
    def order(self) -> RequestQueue:
        """The queue itself, to look at."""
        return self._queue

    def apply(self, document: PoolDocument) -> None:
        """Take over another document's bounds; nobody who waits is sent away.

        Whoever waits for an endpoint that its rules forbid now has to choose again.
        """
        self._queue.apply(document)
        if self._queue.waiting:
            self._queue.regate(self._gate_now)
        self.stir()

    def _gate_now(self, ticket: Ticket) -> Gate:
        endpoint, request = endpoint_of(ticket), ticket.request
        if endpoint is not None:
            rules = self._known.rules
            if not rules.lets_answer(endpoint, request, self._residency(request)):
                endpoint = None
        return self._gate_of(request, endpoint)

    def stir(self) -> None:
        """Capacity may have come free."""
        if self._queue.waiting:
            self.on_capacity()

    # Waiting.

    def must_wait(self, request: InferenceRequest, destination: str | None = None) -> bool:
        """Whether a request would overtake one that waits for the same endpoint, or the pool."""
        if not self._queue.waiting:
            return False
        gates = {self._gate_of(request, None), self._gate_of(request, destination)}
        return any(self._queue.must_wait(request.priority, gate) for gate in gates)

    def _gate_of(self, request: InferenceRequest, endpoint: str | None) -> Gate:
        if endpoint is not None:
            return None, endpoint
        return self._known.rules.gate_of(request, self._residency(request)), None

    def _residency(self, request: InferenceRequest) -> Residency:
        return residency_of(self._known.tenants.spec(request.tenant), request)

    def offer(
        self,
        request: InferenceRequest,
        *,
        body_bytes: int,
        now: float,
        stopped: Refusal | None = None,
        endpoint: str | None = None,
    ) -> "Offered":
        """Let a request wait until `release` or `expire` give it back, or say why it cannot.

        Its cost in the fair share is its expected tokens of both phases. `stopped` is the gate's
        refusal, for the time to come back; `endpoint` is whose room it waits for (see
        `Decision.wanted`), `None` for any.
        """
        offer = self._queue.offer(
            request,
            gate=self._gate_of(request, endpoint),
            tokens=admission.expected_tokens(self._known, request),
            body_bytes=body_bytes,
            now=now,
        )
        refusal = None
        if offer.ticket is None:
            refusal = self._no_place(request, offer.full, stopped, now=now)
        displaced = tuple(
            (ticket, self._no_place(ticket.request, "displaced", None, now=now))
            for ticket in offer.displaced
        )
        return Offered(ticket=offer.ticket, refusal=refusal, displaced=displaced)

    def _no_place(
        self, request: InferenceRequest, full: str, stopped: Refusal | None, *, now: float
    ) -> Refusal:
        """The time to come back is the longer of the engines' and the queue's."""
        waits = [
            stopped.retry_after_seconds if stopped else None,
            self._queue.seconds_until_turn(request.priority, now=now),
        ]
        return Refusal(
            status=429,
            code="pool-saturated",
            message=f"The pool is saturated and {_FULL[full]}.",
            retry_after_seconds=max((wait for wait in waits if wait is not None), default=1.0),
            rule=f"queue:{full}",
            dropped_reason=admission.SATURATED,
        )

    def passed(self, request: InferenceRequest) -> None:
        """A request went straight through while others wait: lower bands earn their part."""
        if self._queue.waiting:
            tokens = admission.expected_tokens(self._known, request)
            self._queue.passed(request.priority, tokens)

    def release(
        self, *, now: float, decide: Decide | None = None
    ) -> tuple[Ticket, Decision] | None:
        """The next request that may go, out of the queue, with its decision; `None` for nobody.

        A decision with a refusal is one that waiting would not change. Whoever stands behind
        requests of a closed gate is not held up by them, over several calls where there are many
        gates. Call `settle` when the request has left the router.
        """
        price = decide or (lambda ticket: self._decide(ticket.request, now=now))
        closed = _Closed(admission.full_endpoints(self._known), self._looked_at)
        self._looked_at = set()
        has_looked_again = False
        for _ in range(MOST_LOOKS):
            ticket = self._queue.head(closed)
            if ticket is None:
                if has_looked_again or not self._look_again(price):
                    return None
                has_looked_again = True
                continue
            decision = price(ticket)
            if decision.refusal is None:
                self._queue.release(ticket, now=now)
                return ticket, decision
            if decision.refusal.code not in GATED:
                self._queue.cancel(ticket, "refused")
                return ticket, decision
            gate = self._gate_of(ticket.request, decision.wanted)
            closed.gates.add(gate)
            if gate != ticket.gate:
                self._queue.move(ticket, gate)
        self._looked_at = closed.gates
        return None

    def _look_again(self, price: Decide) -> bool:
        """Whether somebody waits now for another endpoint, which is idle."""
        idle = admission.idle_endpoints(self._known)
        return bool(idle) and self._again.look(lambda ticket: self._better(ticket, price, idle))

    def _better(self, ticket: Ticket, price: Decide, idle: frozenset[str]) -> Gate | None:
        """Where a request need not wait; `None`: it stays where it is."""
        decision, request = price(ticket), ticket.request
        if decision.wanted in idle:
            return self._gate_of(request, decision.wanted)
        is_final = decision.refusal is not None and decision.refusal.code not in GATED
        return self._gate_of(request, None) if is_final else None

    def cancel(self, ticket: Ticket) -> bool:
        """Its client left; false when it did not wait any more."""
        return self._queue.cancel(ticket)

    def expire(self, *, now: float) -> list[tuple[Ticket, Refusal]]:
        """Requests whose wait is over: 429 where endpoints exist, else what there is instead."""
        return [
            (ticket, self._of_expiry(ticket, now=now)) for ticket in self._queue.expire(now=now)
        ]

    def clear(self, refusal: Refusal) -> list[tuple[Ticket, Refusal]]:
        """Send everybody away, as at the end of the router."""
        return [(ticket, refusal) for ticket in self._queue.clear()]

    def _of_expiry(self, ticket: Ticket, *, now: float) -> Refusal:
        known, request = self._known, ticket.request
        eligible = known.rules.of(
            request,
            self._residency(request),
            exclude=frozenset(),
            has_breakers=len(known.breakers) > 0,
            now=now,
        )
        waited = now - ticket.offered_at
        return admission.refusal_of_pool(eligible) or Refusal(
            status=429,
            code="pool-saturated",
            message=f"No endpoint had room within the {waited:.1f} s that the request waited.",
            retry_after_seconds=self._queue.seconds_until_turn(request.priority, now=now),
            rule="queue:ttl",
            dropped_reason=admission.TTL_EXPIRED,
        )

    def is_starving(self, *, now: float) -> bool:
        """Whether running sheddable work should end: the document wants it, and a request that is
        not sheddable waits longer than the gate allows."""
        return any(True for _ in self._starving(now=now))

    def _starving(self, *, now: float) -> Iterator[Ticket]:
        document = self._known.document
        if document.admission.evict_sheddable:
            since = now - admission.saturation_seconds(document)
            yield from self._queue.offered_before(since, least_priority=0)

    def victim(self, running: Iterable[InferenceRequest], *, now: float) -> InferenceRequest | None:
        """Whom of them to evict for who starves; `None` if nobody starves or no end would help.

        Who waits for an endpoint is helped by its room alone.
        """
        sheddable = [request for request in running if request.priority < 0]
        looked_at: set[str | None] = set()
        for ticket in self._starving(now=now) if sheddable else ():
            endpoint = endpoint_of(ticket)
            if endpoint in looked_at:
                continue
            looked_at.add(endpoint)
            if endpoint is None:
                return victim(sheddable)
            there = self._known.leases.answered_by(endpoint)
            chosen = victim(request for request in sheddable if request.id in there)
            if chosen is not None:
                return chosen
        return None

    # Limits.

    def reserve(self, request: InferenceRequest, *, now: float) -> None:
        """Count a request and its expected tokens against its tenant's and key's limits.

        It holds them over all its attempts and while it waits, until `settle`; again, it does
        nothing.
        """
        limits = self._known.tenants
        if limits.is_limiting:
            tokens = admission.expected_tokens(self._known, request)
            limits.reserve(request, tokens=tokens, now=now)

    def settle(self, request: InferenceRequest) -> None:
        """A request has left the router; again, it does nothing."""
        self._known.tenants.settle(request)
        self._queue.forget(request)

    def follow(self, request: InferenceRequest, *, of: InferenceRequest) -> None:
        """A request goes on as another one, as a broken stream does: both are one in the limits."""
        self._known.tenants.follow(request, of=of)

    def began(self, lease: Lease, *, now: float) -> None:
        """A lease was opened: without a `reserve` before, it holds the limits itself."""
        limits, request = self._known.tenants, lease.request
        if limits.is_limiting and not limits.holds(request):
            tokens = admission.expected_tokens(self._known, request)
            grant = limits.take(request, tokens=tokens, now=now)
            if grant is not None:
                self._grants[lease.number] = grant

    def ended(self, lease: Lease, tokens: int) -> None:
        """A lease is closed; its request cost so many tokens. Again, it does nothing."""
        request = lease.request
        grant = self._grants.pop(lease.number, None) if self._grants else None
        if grant is None:
            self._known.tenants.use(request, tokens)
        else:
            grant.use(tokens)
            grant.close()
        if tokens:
            # An attempt that cost nothing is followed by another one, or by `settle`.
            self._queue.use(request, tokens)
        self.stir()

    def rates_left(
        self, tenant: str, key_id: str, *, now: float
    ) -> tuple[Remaining | None, Remaining | None]:
        """What may still be sent: requests and tokens; `None` where nothing limits."""
        return self._known.tenants.remaining(tenant, key_id, now=now)

    def describe(self, *, now: float) -> dict[str, Any]:
        """JSON-able state: counts only."""
        return self._queue.describe(now=now)


EVICTION: Final = Refusal(
    status=429,
    code="pool-saturated",
    message="This sheddable request was ended because requests of higher priority waited.",
    retry_after_seconds=1.0,
    rule="eviction",
    dropped_reason=admission.EVICTED,
)
"""What an evicted request is told."""


def victim(running: Iterable[InferenceRequest]) -> InferenceRequest | None:
    """Whom to evict: the lowest priority below 0, of those the newest; `None` if all are above."""
    sheddable = [request for request in running if request.priority < 0]
    return min(sheddable, key=lambda request: (request.priority, -request.arrived_at), default=None)


def _nothing() -> None:
    """Nobody listens."""
