"""Limits of tenants and keys: buckets, reservation and settlement, the tightest level decides."""

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from routing.core.document import KeySpec, TenantSpec
from routing.core.request import InferenceRequest
from routing.producers.tenants import Exceeded, TenantLimits, Use, name_of
from tests.routing.pool.builders import make_request

SHA = "0" * 64


def limits_of(now: float = 0.0, **tenant: float) -> TenantLimits:
    return TenantLimits((TenantSpec(tenant="tenant-a", **tenant),), now=now)


def with_key(tenant: dict[str, float], key: dict[str, float]) -> TenantLimits:
    spec = KeySpec(id="key-a", sha256=SHA, tenant="tenant-a", project="project-a", **key)
    return TenantLimits((TenantSpec(tenant="tenant-a", **tenant),), keys=(spec,), now=0.0)


def stop(
    limits: TenantLimits, *, now: float = 0.0, tokens: int = 100, **request: object
) -> Exceeded | None:
    return limits.exceeded(make_request(**request), tokens=tokens, now=now)


def send(limits: TenantLimits, *, now: float = 0.0, tokens: int = 100) -> InferenceRequest:
    request = make_request()
    limits.reserve(request, tokens=tokens, now=now)
    return request


def test_a_tenant_without_limits_is_never_held_back() -> None:
    limits = limits_of()

    for _ in range(1000):
        send(limits)

    assert not limits.is_limiting
    assert stop(limits) is None
    assert limits.open_grants() == 0


def test_a_burst_of_one_second_passes_and_then_the_rate_holds() -> None:
    limits = limits_of(requests_per_second=10)

    for _ in range(10):
        assert stop(limits) is None
        send(limits)
    stopped = stop(limits)

    assert stopped is not None
    assert stopped.rule == "limit:tenant.requests_per_second"
    assert stopped.wait_seconds == pytest.approx(0.1)
    assert stop(limits, now=0.11) is None


@settings(deadline=None)
@given(st.floats(0.1, 50), st.lists(st.floats(0, 0.5), max_size=200))
def test_never_more_than_the_rate_and_one_burst(rate: float, gaps: list[float]) -> None:
    limits, now, sent = limits_of(requests_per_second=rate), 0.0, 0

    for gap in gaps:
        now += gap
        if stop(limits, now=now) is None:
            send(limits, now=now)
            sent += 1

    assert sent <= max(1.0, rate) + rate * now + 1e-6


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 800), st.integers(0, 800)), max_size=60))
def test_settled_tokens_never_exceed_the_limit_by_more_than_what_was_in_flight(
    steps: list[tuple[float, int, int]],
) -> None:
    limits, now, used, overdrawn = limits_of(tokens_per_minute=6000), 0.0, 0, 0

    for gap, expected, actual in steps:
        now += gap
        if stop(limits, now=now, tokens=expected) is None:
            request = send(limits, now=now, tokens=expected)
            limits.use(request, actual)
            limits.settle(request)
            used += actual
            overdrawn = max(overdrawn, actual - expected)

    assert used <= 6000 + 100 * now + max(0, overdrawn) + 1e-6


def test_tokens_are_reserved_by_estimate_and_settled_by_use() -> None:
    limits = limits_of(tokens_per_minute=1000)

    request = send(limits, tokens=900)
    while_running = stop(limits, tokens=200)
    limits.use(request, 100)
    limits.settle(request)

    assert while_running is not None
    assert while_running.rule == "limit:tenant.tokens_per_minute"
    assert while_running.wait_seconds == pytest.approx(6.0)
    assert stop(limits, tokens=900) is None


def test_a_request_larger_than_a_full_bucket_passes_when_it_is_full() -> None:
    limits = limits_of(tokens_per_minute=1000)

    first = stop(limits, tokens=5000)
    send(limits, tokens=5000)

    assert first is None
    assert stop(limits, tokens=1, now=200.0) is not None
    assert stop(limits, tokens=1, now=250.0) is None


def test_a_failed_attempt_is_given_back_whole() -> None:
    limits = limits_of(tokens_per_minute=1000)

    request = send(limits, tokens=1000)
    limits.use(request, 0)
    limits.settle(request)

    assert stop(limits, tokens=1000) is None


def test_concurrency_counts_requests_until_they_leave_and_settling_twice_is_harmless() -> None:
    limits = limits_of(concurrency=2)
    first, second = send(limits), send(limits)

    full = stop(limits)
    for _ in range(3):
        limits.settle(first)

    assert full is not None
    assert full.rule == "limit:tenant.concurrency"
    assert stop(limits) is None
    limits.settle(second)
    assert limits.open_grants() == 0


def test_a_request_that_was_let_in_is_not_stopped_by_what_it_holds_itself() -> None:
    limits = limits_of(concurrency=1)

    request = send(limits)

    assert limits.exceeded(request, tokens=100, now=0.0) is None
    assert stop(limits) is not None


@pytest.mark.lesson("T14")
@pytest.mark.parametrize(
    ("tenant", "key", "rule"),
    [
        pytest.param(
            {"concurrency": 5}, {"concurrency": 1}, "limit:key.concurrency", id="key-is-tighter"
        ),
        pytest.param(
            {"concurrency": 1}, {"concurrency": 5}, "limit:tenant.concurrency", id="tenant-is"
        ),
        pytest.param(
            {"requests_per_second": 1},
            {"concurrency": 5},
            "limit:tenant.requests_per_second",
            id="a-key-with-limits-does-not-hide-the-tenants",
        ),
        pytest.param(
            {"tokens_per_minute": 60},
            {"requests_per_second": 1},
            "limit:tenant.tokens_per_minute",
            id="the-longest-wait-is-told",
        ),
    ],
)
def test_every_level_holds_and_the_tightest_decides(
    tenant: dict[str, float], key: dict[str, float], rule: str
) -> None:
    limits = with_key(tenant, key)
    send(limits)

    stopped = stop(limits)

    assert stopped is not None
    assert stopped.rule == rule


def test_another_document_keeps_what_was_used() -> None:
    limits = limits_of(requests_per_second=10, concurrency=10)
    request = send(limits)
    for _ in range(9):
        send(limits)

    limits.apply((TenantSpec(tenant="tenant-a", requests_per_second=20, concurrency=10),), now=0.0)
    stopped = stop(limits)
    limits.settle(request)

    assert stopped is not None
    assert stop(limits, now=0.0) is None


def test_limits_that_a_document_drops_hold_nobody_and_leave_nothing_behind() -> None:
    limits = limits_of(concurrency=1)
    request = send(limits)

    limits.apply((), now=0.0)

    assert stop(limits) is None
    limits.settle(request)
    limits.apply((), now=0.0)
    assert not limits.is_limiting


NAME = name_of("tenant", "tenant-a")


def heard(limits: TenantLimits, number: int, *, epoch: int = 1, **use: float) -> None:
    fields = {"open": 0, "requests": 0, "tokens": 0} | use
    limits.hear("r2", (epoch, number), NAME, Use(**fields), now=0.0)


def test_requests_that_run_elsewhere_count_until_their_node_says_so_or_is_gone() -> None:
    limits = limits_of(concurrency=2)
    heard(limits, 1, open=2)

    full = stop(limits)
    heard(limits, 2, open=1)
    one_left = stop(limits)
    heard(limits, 1, open=2)
    out_of_order = stop(limits)
    send(limits)
    full_again = stop(limits)
    limits.keep_nodes(["r3"])

    assert full is not None
    assert one_left is None
    assert out_of_order is None
    assert full_again is not None
    assert stop(limits) is None


def test_what_is_used_elsewhere_is_taken_here_and_what_was_used_long_ago_is_not() -> None:
    limits = limits_of(tokens_per_minute=1000, requests_per_second=10)
    heard(limits, 1, requests=5000, tokens=900_000)

    at_first = limits.remaining("tenant-a", "", now=0.0)
    heard(limits, 2, requests=5004, tokens=900_600)
    later = limits.remaining("tenant-a", "", now=0.0)
    heard(limits, 3, requests=5004, tokens=900_100)
    settled = limits.remaining("tenant-a", "", now=0.0)

    assert [each.remaining for each in at_first if each] == [10, 1000]
    assert [each.remaining for each in later if each] == [6, 400]
    assert [each.remaining for each in settled if each] == [6, 900]


def test_a_node_that_starts_again_counts_from_zero() -> None:
    limits = limits_of(tokens_per_minute=1000, concurrency=3)
    heard(limits, 9, open=2, tokens=500)

    heard(limits, 1, epoch=2, open=1, tokens=300)
    heard(limits, 10, epoch=1, open=2, tokens=500)
    send(limits)

    assert limits.remaining("tenant-a", "", now=0.0)[1].remaining == 600  # type: ignore[union-attr]
    assert stop(limits, tokens=1) is None
    send(limits)
    assert stop(limits, tokens=1) is not None


def test_one_message_never_takes_more_than_a_whole_bucket() -> None:
    limits = limits_of(tokens_per_minute=1000)
    heard(limits, 1)

    heard(limits, 2, tokens=10_000_000)

    stopped = stop(limits, tokens=1)
    assert stopped is not None
    assert stopped.wait_seconds < 60


def test_what_this_node_uses_is_told_by_a_name_that_names_nobody() -> None:
    limits = limits_of(concurrency=9)
    request = send(limits, tokens=500)

    during = limits.own_use()
    limits.use(request, 120)
    limits.settle(request)

    assert during == {NAME: Use(open=1, requests=1, tokens=500)}
    assert limits.own_use() == {NAME: Use(open=0, requests=1, tokens=120)}
    assert "tenant" not in NAME


def test_a_request_that_goes_on_as_another_one_is_one_in_the_limits() -> None:
    limits = limits_of(concurrency=2, tokens_per_minute=1000)
    first, rest = send(limits, tokens=400), make_request()

    limits.follow(rest, of=first)
    held = limits.holds(rest)
    limits.use(first, 100)
    limits.use(rest, 50)
    limits.settle(first)

    assert held
    assert limits.open_grants() == 0
    assert limits.own_use()[NAME] == Use(open=0, requests=1, tokens=150)


def test_what_is_left_is_that_of_the_tightest_bucket() -> None:
    limits = with_key({"requests_per_second": 10, "tokens_per_minute": 6000}, {})
    send(limits, tokens=600)

    requests, tokens = limits.remaining("tenant-a", "key-a", now=0.0)

    assert requests is not None
    assert tokens is not None
    assert (requests.limit, requests.remaining) == (10, 9)
    assert (tokens.limit, tokens.remaining) == (6000, 5400)
    assert tokens.reset_seconds == pytest.approx(6.0)
    assert limits.remaining("other", "other", now=0.0) == (None, None)


class LimitsMachine(RuleBasedStateMachine):
    """Any order of requests, settlements, documents and news of other nodes: counts never go below
    zero, and when everybody has left nothing is held."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = with_key({"concurrency": 3, "tokens_per_minute": 1e4}, {"concurrency": 2})
        self.inside: list[InferenceRequest] = []
        self.now = 0.0
        self.number = 0

    @rule(tokens=st.integers(0, 5000), seconds=st.floats(0, 10))
    def arrive(self, tokens: int, seconds: float) -> None:
        self.now += seconds
        request = make_request("x") if not self.inside else msgspec.structs.replace(self.inside[0])
        stopped = self.limits.exceeded(request, tokens=tokens, now=self.now)
        if stopped is None:
            self.limits.reserve(request, tokens=tokens, now=self.now)
            self.inside.append(request)

    @rule(index=st.integers(0, 9), tokens=st.integers(0, 9000), times=st.integers(1, 3))
    def leave(self, index: int, tokens: int, times: int) -> None:
        if self.inside:
            request = self.inside.pop(index % len(self.inside))
            self.limits.use(request, tokens)
            for _ in range(times):
                self.limits.settle(request)

    @rule(index=st.integers(0, 9))
    def go_on(self, index: int) -> None:
        if self.inside:
            of = self.inside[index % len(self.inside)]
            self.limits.follow(msgspec.structs.replace(of), of=of)

    @rule(limited=st.booleans(), most=st.integers(1, 5))
    def document(self, most: int, *, limited: bool) -> None:
        spec = TenantSpec(tenant="tenant-a", concurrency=most)
        self.limits.apply((spec,) if limited else (), now=self.now)

    @rule(node=st.sampled_from("ab"), epoch=st.integers(1, 3), running=st.integers(0, 3))
    def news(self, node: str, epoch: int, running: int) -> None:
        self.number += 1
        use = Use(open=running, requests=self.number, tokens=10 * self.number)
        self.limits.hear(node, (epoch, self.number), NAME, use, now=self.now)

    @rule(nodes=st.sets(st.sampled_from("ab")))
    def nodes_go(self, nodes: set[str]) -> None:
        self.limits.keep_nodes(sorted(nodes))

    @invariant()
    def nothing_is_below_zero(self) -> None:
        for level in self.limits._levels.values():
            assert level.open >= 0
            assert level.elsewhere >= 0
            assert level.open <= len(self.inside)

    def teardown(self) -> None:
        for request in self.inside:
            self.limits.settle(request)
        self.limits.keep_nodes([])
        assert self.limits.open_grants() == 0
        for level in self.limits._levels.values():
            assert (level.open, level.elsewhere) == (0, 0)


TestAnyInterleaving = pytest.mark.lesson("S01")(LimitsMachine.TestCase)
TestAnyInterleaving.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
