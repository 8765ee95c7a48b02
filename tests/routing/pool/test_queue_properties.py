"""The queue against a plain model, and what holds for any order of requests."""

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from routing.producers.fair_share import Ticket
from tests.routing.pool.queues import asked, enter, queue_of, serve


class QueueMachine(RuleBasedStateMachine):
    """Any interleaving: each request that was offered ends exactly once, bounds hold, and who is
    first is never lower than who waits above, but for the trickle."""

    MOST, BYTES = 6, 100

    def __init__(self) -> None:
        super().__init__()
        bands = [{"priority": -1, "queue_requests": 4}, {"priority": 0, "queue_requests": 5}]
        self.queue = queue_of(
            queue_requests=self.MOST, queue_bytes=self.BYTES, queue_seconds=20, bands=bands
        )
        self.now = 0.0
        self.offered: list[Ticket] = []
        self.refused = 0
        self.ends: Counter[int] = Counter()

    @rule(
        tenant=st.sampled_from("abc"),
        priority=st.sampled_from([-1, 0, 1]),
        tokens=st.integers(0, 400),
        size=st.integers(0, 40),
        seconds=st.sampled_from([None, 0.0, 5.0, 100.0]),
        gate=st.sampled_from("gh"),
    )
    def offer(
        self,
        tenant: str,
        priority: int,
        tokens: int,
        size: int,
        seconds: float | None,
        gate: str,
    ) -> None:
        request = asked(tenant=tenant, priority=priority, queue_seconds=seconds)
        offer = self.queue.offer(request, gate=gate, tokens=tokens, body_bytes=size, now=self.now)
        assert (offer.ticket is None) == bool(offer.full)
        for victim in offer.displaced:
            assert victim.request.priority < min(priority, 0)
            self.ends[victim.number] += 1
        if offer.ticket is None:
            self.refused += 1
        else:
            assert offer.ticket.expires_at <= self.now + min(20.0, seconds or 20.0) or seconds == 0
            self.offered.append(offer.ticket)

    @rule(closed=st.sets(st.sampled_from("gh")))
    def release(self, closed: set[str]) -> None:
        head = self.queue.head(closed)
        could = [each for each in self.queue if each.gate not in closed]
        assert (head is None) == (not could)
        if head is not None:
            assert head in could
            self.queue.release(head, now=self.now)
            self.ends[head.number] += 1

    @rule(index=st.integers(0, 50), gate=st.sampled_from("gh"))
    def move(self, index: int, gate: str) -> None:
        waiting = list(self.queue)
        if waiting:
            self.queue.move(waiting[index % len(waiting)], gate)

    @rule(index=st.integers(0, 50))
    def cancel(self, index: int) -> None:
        if self.offered:
            ticket = self.offered[index % len(self.offered)]
            if self.queue.cancel(ticket):
                self.ends[ticket.number] += 1

    @rule(seconds=st.floats(0, 12))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for ticket in self.queue.expire(now=self.now):
            assert ticket.expires_at <= self.now
            self.ends[ticket.number] += 1

    @rule(index=st.integers(0, 50), tokens=st.integers(0, 1000))
    def use(self, index: int, tokens: int) -> None:
        if self.offered:
            request = self.offered[index % len(self.offered)].request
            self.queue.use(request, tokens)
            self.queue.forget(request)

    @invariant()
    def everybody_is_somewhere_once(self) -> None:
        waiting = {ticket.number for ticket in self.queue}
        assert all(count == 1 for count in self.ends.values())
        assert waiting.isdisjoint(self.ends)
        assert len(waiting) + len(self.ends) == len(self.offered)
        assert sum(self.queue.totals.values()) == len(self.ends)

    @invariant()
    def bounds_hold(self) -> None:
        assert len(self.queue) == len(list(self.queue)) <= self.MOST
        assert self.queue.waiting_bytes == sum(ticket.body_bytes for ticket in self.queue)
        assert self.queue.waiting_bytes <= self.BYTES

    def teardown(self) -> None:
        self.now += 1000
        for ticket in self.queue.expire(now=self.now):
            self.ends[ticket.number] += 1
        assert len(self.queue) == self.queue.waiting_bytes == 0
        assert len(self.ends) == len(self.offered)


TestAnyInterleaving = QueueMachine.TestCase
TestAnyInterleaving.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(1, 500), st.floats(0, 100)),
        min_size=1,
        max_size=60,
    )
)
def test_within_a_band_everybody_gets_through_and_inside_a_tenant_by_deadline(
    entries: list[tuple[str, int, float]],
) -> None:
    queue = queue_of(queue_seconds=1000)
    for tenant, tokens, due in entries:
        enter(queue, tenant=tenant, tokens=tokens, slo_ttft_seconds=due + 0.001)

    order = [serve(queue) for _ in entries]

    assert len(queue) == 0
    for tenant in "abcd":
        due = [ticket.deadline for ticket in order if ticket.request.tenant == tenant]
        assert due == sorted(due)
