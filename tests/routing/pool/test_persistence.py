"""Learned speeds across a restart of the router."""

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from routing.pool import persistence
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import endpoint_dict, make_request, make_router

HOUR = 3600.0


def fleet(**first: Any) -> PoolRouter:
    return make_router(
        endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"),
        endpoint_dict("a", **first), endpoint_dict("b"),
    )  # fmt: skip


def taught() -> PoolRouter:
    """A router whose endpoint `a` decodes three times slower than its class."""
    router = fleet()
    for turn in range(60):
        now = turn * 10.0
        request = make_request(f"{turn} " * 500, id=f"r-{turn}", max_tokens=200)
        decision = router.decide(
            request, now=now, exclude=frozenset({"p", "d", "b"}), policy="random"
        )
        lease = router.begin(request, decision, now=now)
        router.first_token(lease, now=now + 0.1)
        router.end(
            lease, now=now + 0.1 + 199 * 0.019, outcome="ok",
            prompt_tokens=500, cached_tokens=0, completion_tokens=200,
        )  # fmt: skip
    return router


def step_of(router: PoolRouter, name: str) -> float:
    rows = {row["id"]: row for row in router.snapshot(now=0.0)["endpoints"]}
    step: float = rows[name]["speeds"]["decode"]["step_seconds"]
    return step


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    exported: dict[str, Any] = json.loads(json.dumps(taught().speeds.export()))
    return exported


def test_a_restarted_router_knows_what_it_knew(kept: dict[str, Any]) -> None:
    before, after = taught(), fleet()

    taken = after.speeds.restore(kept, age_seconds=30.0)

    assert taken == 2
    assert step_of(after, "a") == pytest.approx(step_of(before, "a"))
    assert step_of(after, "a") > 0.012
    assert step_of(after, "b") == pytest.approx(step_of(before, "b"), rel=0.05)


def test_an_engine_that_was_started_anew_is_the_same_card(kept: dict[str, Any]) -> None:
    after = fleet(instance="2")

    after.speeds.restore(kept, age_seconds=30.0)

    assert step_of(after, "a") > 0.012


def test_older_knowledge_gives_way_sooner(kept: dict[str, Any]) -> None:
    def variance(age: float) -> float:
        router = fleet()
        router.speeds.restore(kept, age_seconds=age)
        rows = {row["id"]: row for row in router.snapshot(now=0.0)["endpoints"]}
        found: float = rows["a"]["speeds"]["decode"]["variances"][0]
        return found

    assert variance(0.0) < variance(6 * HOUR) < variance(240 * HOUR)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"classes": [], "endpoints": 3, "pairs": "x"},
        {"classes": {"fast": {"prefill": 1}}, "endpoints": {"a": {"speed_class": "fast"}}},
        {"classes": {}, "endpoints": {"a": {"speed_class": "slow"}}},
        {"classes": {}, "endpoints": {"unknown": {}}},
    ],
)
def test_what_does_not_fit_is_left_out(kept: dict[str, Any], change: dict[str, Any]) -> None:
    router, fresh = fleet(), fleet()

    assert router.speeds.restore(kept | change, age_seconds=0.0) == 0

    assert step_of(router, "a") == step_of(fresh, "a")


def test_a_time_before_it_was_written_or_none_is_refused(kept: dict[str, Any]) -> None:
    router = fleet()

    assert router.speeds.restore(kept, age_seconds=-1.0) == 0
    assert router.speeds.restore(kept, age_seconds=float("nan")) == 0


def test_transfer_costs_of_pairs_come_back() -> None:
    router, after = fleet(), fleet()
    pairs = router._known.pairs
    for _ in range(50):
        pairs.observe(0, 1, tokens=1000, seconds=float(pairs.prior[0, 0]) * 1000 * 4)

    after.speeds.restore(router.speeds.export(), age_seconds=0.0)

    assert after._known.pairs.seconds_per_token[0, 0] == pytest.approx(
        pairs.seconds_per_token[0, 0]
    )
    assert after._known.pairs.scale[0, 0] > 3


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["version", "classes", "endpoints", "pairs", "fast", "a", "prefill", "decode",
             "factors", "covariance", "noise_variance", "samples", "scale", "speed_class"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(classes=JSON, endpoints=JSON, pairs=JSON)
def test_no_kept_file_can_break_a_router(classes: object, endpoints: object, pairs: object) -> None:
    router = fleet()
    kept = {"version": persistence.VERSION, "classes": classes, "endpoints": endpoints}

    router.speeds.restore(kept | {"pairs": pairs}, age_seconds=5.0)

    assert router.decide(make_request(), now=0.0).destination is not None
