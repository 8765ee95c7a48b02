"""sglang-router's cache_aware: balance thresholds, match threshold, the tree of own requests."""

from typing import Any

import pytest

from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.pool.policies.sglang_cache_aware import SglangCacheAware
from tests.routing.contexts import make_context
from tests.routing.pool.builders import endpoint_dict, make_request, make_router


def lease_of(table: Any, row: int, request: InferenceRequest) -> Lease:
    return Lease(
        number=1,
        request=request,
        decision=None,
        destination=table.instances[row],
        prefill=None,
        began_at=0.0,
        work_tokens=0,
        output_tokens=1,
    )


def after_a_request(requests: list[int], asked: str, at: int = 2) -> tuple[int, str]:
    """What is chosen for `asked` when a prompt of 6,000 characters went to row `at` before."""
    policy, context = SglangCacheAware(), make_context(3, requests=requests)
    sent = make_request("hello " * 1000)
    policy.began(lease_of(context.table, at, sent), context.table, now=0.0)
    context.request = make_request(asked)
    ranking = policy.choose(context)
    return ranking.rows[0], ranking.reason


@pytest.mark.parametrize(
    ("requests", "expected", "reason"),
    [
        pytest.param([0, 0, 60], 2, "longest match", id="hit-whatever-its-load"),
        pytest.param([0, 0, 64], 2, "longest match", id="64-apart-is-not-too-far"),
        pytest.param([0, 1, 65], 0, "loads far apart: fewest requests", id="too-far-apart"),
        pytest.param([200, 200, 290], 2, "longest match", id="far-apart-yet-below-1.5-times"),
        pytest.param([150, 140, 240], 1, "loads far apart: fewest requests", id="1.5-times"),
    ],
)
def test_balance_before_match(requests: list[int], expected: int, reason: str) -> None:
    assert after_a_request(requests, "hello " * 1000) == (expected, reason)


def test_a_match_of_three_tenths_or_less_goes_to_the_fewest_requests_first_on_ties() -> None:
    short_match = "hello " * 250 + "other " * 1000

    assert after_a_request([1, 1, 1], short_match) == (0, "no long match: fewest requests")
    assert after_a_request([1, 0, 0], short_match)[0] == 1


def test_a_match_above_three_tenths_is_followed() -> None:
    assert after_a_request([0, 0, 9], "hello " * 600 + "other " * 700)[0] == 2


def test_one_shared_prefix_gathers_on_one_endpoint_as_it_does_upstream() -> None:
    router = make_router(
        *(endpoint_dict(name) for name in "abc"),
        role_mode="unified",
        policy={"name": "sglang-cache-aware"},
    )
    chosen = set()
    for turn in range(40):
        request = make_request("shared " * 800 + str(turn), id=f"r{turn}")
        decision = router.decide(request, now=float(turn))
        router.begin(request, decision, now=float(turn))
        chosen.add(decision.destination)

    assert chosen == {"a"}
