"""Refusals: which status, and when to come back."""

import pytest

from tests.routing.pool.builders import endpoint_dict, make_request, make_router

POLICIES = ["random", "round-robin", "least-requests", "consort"]


def test_no_allowed_jurisdiction_is_403() -> None:
    decision = make_router(endpoint_dict("a")).decide(make_request(jurisdictions=("DE",)), now=0.0)

    assert decision.refusal is not None
    assert (decision.refusal.status, decision.refusal.code) == (403, "policy-denied")
    assert decision.destination is None


@pytest.mark.parametrize(
    "endpoints",
    [
        pytest.param([], id="no-endpoints"),
        pytest.param([endpoint_dict("a", state="draining")], id="draining"),
        pytest.param([endpoint_dict("p", role="prefill")], id="prefill-only"),
    ],
)
def test_nothing_that_can_answer_is_503(endpoints: list[dict[str, object]]) -> None:
    decision = make_router(*endpoints).decide(make_request(), now=0.0)

    assert decision.refusal is not None
    assert (decision.refusal.status, decision.refusal.code) == (503, "no-capacity")


def test_a_saturated_pool_is_429_with_the_time_to_come_back() -> None:
    router = make_router(endpoint_dict("a"), admission={"maximum_wait_seconds": 5})
    for _ in range(20):
        request = make_request("word " * 6000)
        decision = router.decide(request, now=0.0, policy="random")
        if decision.refusal is not None:
            break
        router.begin(make_request("other " * 6000), decision, now=0.0)

    assert decision.refusal is not None
    assert (decision.refusal.status, decision.refusal.code) == (429, "pool-saturated")
    assert decision.refusal.retry_after_seconds is not None
    assert decision.refusal.retry_after_seconds >= 1


def test_sheddable_requests_are_refused_first() -> None:
    router = make_router(endpoint_dict("a"), admission={"maximum_wait_seconds": 2})
    for turn in range(3):
        request = make_request(f"{turn} word " * 5000)
        router.begin(request, router.decide(request, now=0.0), now=0.0)

    normal = router.decide(make_request(), now=0.0)
    sheddable = router.decide(make_request(priority=-1), now=0.0)

    assert normal.refusal is None
    assert sheddable.refusal is not None


def test_an_unknown_model_is_404() -> None:
    decision = make_router(endpoint_dict("a")).decide(make_request(model="other"), now=0.0)

    assert decision.refusal is not None
    assert decision.refusal.status == 404


def test_a_tenants_limits_do_not_stop_a_retry_half_way() -> None:
    limits = [{"tenant": "tenant-a", "requests_per_second": 1, "concurrency": 1}]
    router = make_router(endpoint_dict("a"), endpoint_dict("b"), tenants=limits)
    request = make_request()
    first = router.decide(request, now=0.0)
    lease = router.begin(request, first, now=0.0)
    router.end(lease, now=0.1, outcome="error")

    other = router.decide(make_request(id="other"), now=0.1)
    retry = router.decide(request, now=0.1, exclude=frozenset({first.destination or ""}))

    assert other.refusal is not None
    assert other.refusal.code == "rate-limited"
    assert other.refusal.rule == "limit:tenant.requests_per_second"
    assert retry.destination not in (None, first.destination)
