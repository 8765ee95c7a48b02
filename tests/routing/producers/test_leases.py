"""Bookkeeping that cannot leak: any interleaving of a request's steps and document changes."""

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from routing.core.lease import Lease
from routing.pool.router import PoolRouter
from routing.producers.leases import KV_HOLD_SECONDS
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router

COUNTS = (
    "requests",
    "sequences",
    "unstarted",
    "head_tokens",
    "prefill_requests",
    "prefill_tokens",
    "context_tokens",
    "remaining_tokens",
    "private_tokens",
)
ROLES = {"p1": "prefill", "p2": "prefill", "d1": "decode", "d2": "decode", "b": "both"}
REQUESTS = [make_request(f"{number} word " * 600 * (number + 1)) for number in range(4)]
POLICIES = st.sampled_from(["random", "round-robin", "least-requests", "consort"])
SECONDS = st.floats(0, 3)


def counts(router: PoolRouter) -> dict[str, int]:
    """Sum over all endpoints of everything that leases add."""
    table = router._known.table
    return {name: int(getattr(table, name).sum()) for name in COUNTS}


class Interleavings(RuleBasedStateMachine):
    """A server that makes every call in every order, while endpoints flap."""

    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.version = 1
        self.instances = dict.fromkeys(ROLES, 1)
        self.router = PoolRouter(self.document(), seed=1, now=0.0)
        self.open: list[Lease] = []

    def document(self) -> Any:
        endpoints = [
            endpoint_dict(name, role=ROLES[name], instance=str(instance))
            for name, instance in self.instances.items()
        ]
        return make_document(*endpoints, version=self.version)

    def later(self, seconds: float) -> float:
        self.now += seconds
        return self.now

    @rule(target=leases, request=st.sampled_from(REQUESTS), policy=POLICIES, seconds=SECONDS)
    def begin(self, request: Any, policy: str, seconds: float) -> Lease | None:
        now = self.later(seconds)
        decision = self.router.decide(request, now=now, policy=policy)
        if decision.destination is None:
            return None
        lease = self.router.begin(request, decision, now=now)
        self.open.append(lease)
        return lease

    @rule(lease=leases, cached=st.none() | st.integers(0, 9000), seconds=SECONDS)
    def prefill_done(self, lease: Lease | None, cached: int | None, seconds: float) -> None:
        if lease is not None:
            self.router.prefill_done(
                lease, now=self.later(seconds), prompt_tokens=1000, cached_tokens=cached
            )

    @rule(lease=leases, seconds=SECONDS)
    def first_token(self, lease: Lease | None, seconds: float) -> None:
        if lease is not None:
            self.router.first_token(lease, now=self.later(seconds))

    @rule(lease=leases)
    def lose_sight(self, lease: Lease | None) -> None:
        if lease is not None:
            self.router.unseen.begin(lease)

    @rule(lease=leases, count=st.integers(1, 400))
    def tokens(self, lease: Lease | None, count: int) -> None:
        if lease is not None:
            self.router.tokens(lease, count, now=self.now)

    @rule(
        lease=leases,
        outcome=st.sampled_from(["ok", "error", "aborted", "unseen"]),
        numbers=st.tuples(*[st.none() | st.integers(0, 5000)] * 3),
        seconds=SECONDS,
    )
    def end(
        self, lease: Lease | None, outcome: Any, numbers: tuple[int | None, ...], seconds: float
    ) -> None:
        if lease is not None:
            self.router.end(
                lease,
                now=self.later(seconds),
                outcome=outcome,
                prompt_tokens=numbers[0],
                cached_tokens=numbers[1],
                completion_tokens=numbers[2],
            )

    @rule(
        name=st.sampled_from(sorted(ROLES)),
        kind=st.sampled_from(["connect", "status", "timeout", "stall"]),
    )
    def fail(self, name: str, kind: Any) -> None:
        self.router.failed(name, kind, now=self.now)

    @rule(prefill=st.sampled_from(["p1", "p2"]), decode=st.sampled_from(["d1", "d2"]))
    def fail_pair(self, prefill: str, decode: str) -> None:
        self.router.failed(decode, "kv_transfer", now=self.now, prefill_id=prefill)

    @rule(target=leases, lease=leases, seconds=SECONDS)
    def hand_on(self, lease: Lease | None, seconds: float) -> Lease | None:
        """The destination refused a prompt that is computed: another one gets it."""
        if lease is None or lease.prefill is None:
            return None
        out = frozenset({lease.destination.spec.id})
        decision = self.router.hand_on(lease.decision, exclude=out, now=self.later(seconds))
        self.router.end(lease, now=self.now, outcome="error")
        if decision is None:
            return None
        other = self.router.begin(lease.request, decision, now=self.now)
        self.router.prompt_is_there(other, now=self.now)
        self.open.append(other)
        return other

    @rule(target=leases, lease=leases, came=st.integers(1, 500), seconds=SECONDS)
    def go_on(self, lease: Lease | None, came: int, seconds: float) -> Lease | None:
        """A broken stream goes on elsewhere, with its tokens so far as part of the prompt."""
        if lease is None:
            return None
        self.router.end(lease, now=self.later(seconds), outcome="error")
        parsed = lease.request.parsed
        parsed = msgspec.structs.replace(parsed, prompt_tokens=parsed.prompt_tokens + came)
        request = msgspec.structs.replace(lease.request, parsed=parsed)
        out = frozenset({lease.destination.spec.id})
        decision = self.router.decide(request, now=self.now, exclude=out)
        if decision.destination is None:
            return None
        other = self.router.begin(request, decision, now=self.now)
        self.open.append(other)
        return other

    @rule(name=st.sampled_from(sorted(ROLES)), change=st.sampled_from(["restart", "remove", "add"]))
    def flap(self, name: str, change: str) -> None:
        self.version += 1
        number = self.instances.pop(name, 0)
        if change != "remove":
            self.instances[name] = self.version if change == "restart" else number or self.version
        self.router.apply(self.document(), now=self.now)

    @rule(lease=consumes(leases))
    def forget(self, lease: Lease | None) -> None:
        """The server drops its handle of an ended request."""

    @invariant()
    def nothing_is_negative(self) -> None:
        for name in COUNTS:
            assert (getattr(self.router._known.table, name) >= 0).all(), name

    @invariant()
    def open_leases_are_those_that_began_and_neither_ended_nor_died(self) -> None:
        assert self.router.leases_open == sum(lease.is_open for lease in self.open)

    @invariant()
    def transfers_are_those_of_open_pairs(self) -> None:
        moving = sum(
            lease.is_open
            and lease.prefill is not None
            and lease.prefill.is_alive
            and lease.first_token_at is None
            for lease in self.open
        )
        assert len(self.router._known.transfers) == moving

    def teardown(self) -> None:
        for lease in self.open:
            self.router.end(lease, now=self.now, outcome="aborted")
            self.router.end(lease, now=self.now, outcome="ok", completion_tokens=5)
        assert self.router.leases_open == 0
        assert self.router._known.transfers.full() == []
        assert not self.router._known.pairs.is_full.any()
        # Blocks that nobody pulled stay at the prefill end until its engine drops them.
        self.router.decide(REQUESTS[0], now=self.now + KV_HOLD_SECONDS)
        assert set(counts(self.router).values()) == {0}
        assert self.router._known.leases.open_of("tenant-a") == 0


Interleavings.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestInterleavings = pytest.mark.lesson("S01")(Interleavings.TestCase)


@pytest.mark.lesson("S01")
@given(order=st.permutations(["prefill_done", "first_token", "tokens", "end", "end"]))
@settings(max_examples=60, deadline=None)
def test_the_steps_of_a_pair_in_any_order_leave_nothing(order: list[str]) -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    request = make_request("word " * 6000)
    lease = router.begin(request, router.decide(request, now=0.0, policy="random"), now=0.0)
    calls = {
        "prefill_done": lambda: router.prefill_done(
            lease, now=1.0, prompt_tokens=6000, cached_tokens=0
        ),
        "first_token": lambda: router.first_token(lease, now=2.0),
        "tokens": lambda: router.tokens(lease, 10_000, now=2.0),
        "end": lambda: router.end(lease, now=3.0, outcome="ok", completion_tokens=20),
    }

    for step in order:
        calls[step]()

    assert lease.decision.prefill == "p"
    router.decide(request, now=3.0 + KV_HOLD_SECONDS)
    assert set(counts(router).values()) == {0}


def test_a_pair_loads_the_prefill_end_until_its_prompt_is_done() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    request = make_request("word " * 6000)
    lease = router.begin(request, router.decide(request, now=0.0, policy="random"), now=0.0)
    table = router._known.table

    before = table.prefill_tokens.tolist()
    router.prefill_done(lease, now=1.0, prompt_tokens=6000, cached_tokens=0)

    assert before == [request.parsed.prompt_tokens, 0]
    assert table.prefill_tokens.tolist() == [0, 0]
    assert table.requests.tolist() == [0, 1]
    # Its blocks stay until the destination has pulled them.
    assert table.private_tokens[0] > 0


def test_blocks_that_nobody_pulled_weigh_on_the_prefill_end_until_they_expire() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    request = make_request("word " * 6000)
    lease = router.begin(request, router.decide(request, now=0.0, policy="random"), now=0.0)
    router.prefill_done(lease, now=1.0, prompt_tokens=6000, cached_tokens=0)
    table = router._known.table

    router.end(lease, now=2.0, outcome="aborted")
    router.decide(request, now=1.9 + KV_HOLD_SECONDS)
    before = table.private_tokens.tolist()
    router.decide(request, now=2.0 + KV_HOLD_SECONDS)

    assert before == [request.parsed.prompt_tokens, 0]
    assert table.private_tokens.tolist() == [0, 0]
    assert router.leases_open == 0


def test_a_pair_that_answered_without_a_stream_keeps_nothing() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    request = make_request("word " * 6000)
    lease = router.begin(request, router.decide(request, now=0.0, policy="random"), now=0.0)
    router.prefill_done(lease, now=1.0, prompt_tokens=6000, cached_tokens=0)

    router.end(lease, now=2.0, outcome="ok", completion_tokens=20)

    assert set(counts(router).values()) == {0}


def test_a_lease_of_a_restarted_instance_vanishes_with_it() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request()
    lease = router.begin(request, router.decide(request, now=0.0), now=0.0)

    router.apply(make_document(endpoint_dict("a", instance="2"), version=2), now=1.0)

    assert router.leases_open == 0
    assert not lease.is_open
    assert set(counts(router).values()) == {0}


def test_a_long_request_never_expires_by_time() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request()
    router.begin(request, router.decide(request, now=0.0), now=0.0)

    router.decide(request, now=1e6)

    assert router.snapshot(now=1e6)["endpoints"][0]["inflight_requests"] == 1


def test_a_tenants_concurrency_counts_open_leases() -> None:
    router = make_router(endpoint_dict("a"), tenants=[{"tenant": "tenant-a", "concurrency": 2}])
    request = make_request()
    leases = [router.begin(request, router.decide(request, now=0.0), now=0.0) for _ in range(2)]

    third = router.decide(request, now=0.0)
    other = router.decide(make_request(tenant="tenant-b"), now=0.0)
    router.end(leases[0], now=1.0, outcome="ok")
    later = router.decide(request, now=1.0)

    assert third.refusal is not None
    assert (third.refusal.status, third.refusal.code) == (429, "rate-limited")
    assert other.refusal is None
    assert later.refusal is None


def test_a_tenants_rate_refuses_with_the_time_to_come_back() -> None:
    router = make_router(
        endpoint_dict("a"), tenants=[{"tenant": "tenant-a", "requests_per_second": 0.5}]
    )
    request = make_request()
    router.begin(request, router.decide(request, now=0.0), now=0.0)

    refused = router.decide(request, now=1.0).refusal
    later = router.decide(request, now=2.1)

    assert refused is not None
    assert refused.code == "rate-limited"
    assert refused.retry_after_seconds == pytest.approx(1.0)
    assert later.refusal is None


def test_the_prompt_of_a_request_that_is_not_streamed_stops_counting_when_it_is_due() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request("word " * 6000)
    decision = router.decide(request, now=0.0)
    router.begin(request, decision, now=0.0)
    table = router._known.table
    due = decision.predicted.ttft_seconds

    router.decide(request, now=0.9 * due)
    before = table.prefill_tokens.tolist()
    router.decide(request, now=1.1 * due)

    assert before == [request.parsed.prompt_tokens]
    assert table.prefill_tokens.tolist() == [0]
    assert table.sequences.tolist() == [1]
    assert router.leases_open == 1


def test_a_request_that_is_not_streamed_teaches_its_cache_and_both_phases_at_once() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request("word " * 6000)
    lease = router.begin(request, router.decide(request, now=0.0), now=0.0)

    router.end(
        lease, now=30.0, outcome="ok", prompt_tokens=7500, cached_tokens=0, completion_tokens=99
    )

    state = router.snapshot(now=30.0)["endpoints"][0]
    # Some 30 times slower than the prior: every factor grew, none by itself.
    assert state["speeds"]["decode"]["factors"][0] > 1.2
    assert state["speeds"]["prefill"]["factors"][0] > 1.2
    assert router.decide(request, now=31.0).predicted.hit_tokens > 0
