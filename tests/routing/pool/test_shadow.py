"""Shadow policies see what the live one sees, are counted, and change nothing."""

from typing import Any

import pytest

from routing.core.record import record_of
from routing.explain.explanation import explain
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import (
    endpoint_dict,
    make_document,
    make_request,
    make_router,
    serve,
)


def shadowed(*policies: str, rate: float = 1.0, **overrides: Any) -> PoolRouter:
    return make_router(
        endpoint_dict("a", speed_class="slow"),
        endpoint_dict("b"),
        recording={"shadow_policies": list(policies), "shadow_rate": rate},
        **overrides,
    )


def test_a_shadow_choice_has_its_regret_in_seconds() -> None:
    router = shadowed("round-robin")

    first = router.decide(make_request(), now=0.0)
    second = router.decide(make_request(), now=0.0)
    assert router.snapshot(now=0.0)["shadow"]["round-robin"]["asked"] == 0
    for decision in (first, second):
        router.begin(make_request(), decision, now=0.0)

    (wrong,), (right,) = first.shadows, second.shadows
    assert first.destination == second.destination == "b"
    assert (wrong.destination, wrong.agrees) == ("a", False)
    assert wrong.regret_seconds == pytest.approx(first.margin_seconds)
    assert (right.destination, right.agrees, right.regret_seconds) == ("b", True, 0.0)
    assert router.snapshot(now=0.0)["shadow"]["round-robin"] == {
        "asked": 2,
        "agreed": 1,
        "refused": 0,
        "priced": 2,
        "regret_seconds": pytest.approx(wrong.regret_seconds),
        "ttft_seconds": pytest.approx(wrong.ttft_seconds + right.ttft_seconds),
        "live_ttft_seconds": pytest.approx(2 * right.ttft_seconds),
    }


def test_a_dearer_live_policy_shows_as_negative_regret_of_a_better_shadow() -> None:
    router = shadowed("consort", policy={"name": "round-robin"})

    (shadow,) = router.decide(make_request(), now=0.0).shadows

    assert shadow.destination == "b"
    assert shadow.regret_seconds < 0


def test_shadows_never_change_what_the_live_policy_does() -> None:
    names = [f"e{number}" for number in range(8)]
    endpoints = [endpoint_dict(name) for name in names]
    alone = make_router(*endpoints, policy={"name": "random"})
    watched = make_router(
        *endpoints,
        policy={"name": "random"},
        recording={"shadow_policies": ["consort", "power-of-two"], "shadow_rate": 0.5},
    )

    choices = [
        [serve(router, make_request(id=f"r{turn}"), now=float(turn)) for turn in range(40)]
        for router in (alone, watched)
    ]

    assert choices[0] == choices[1]
    asked = watched.snapshot(now=0.0)["shadow"]["consort"]["asked"]
    assert 5 < asked < 35


def test_without_shadow_policies_nothing_is_asked() -> None:
    router = make_router(endpoint_dict("a"))

    assert not router.shadows.is_on
    assert router.decide(make_request(), now=0.0).shadows == ()
    assert not shadowed("random", rate=0.0).shadows.is_on


def test_the_live_policy_is_not_its_own_shadow() -> None:
    router = shadowed("consort", "random")

    decision = router.decide(make_request(), now=0.0)

    assert [shadow.policy for shadow in decision.shadows] == ["random"]


def test_a_document_that_drops_a_policy_drops_its_tally() -> None:
    router = shadowed("random")
    serve(router, make_request(), now=0.0)

    router.apply(make_document(endpoint_dict("a"), endpoint_dict("b"), version=2), now=1.0)

    assert router.snapshot(now=1.0)["shadow"] == {}


def test_a_record_tells_of_shadows_in_a_sentence() -> None:
    router = shadowed("round-robin")

    points = explain(record_of(router.decide(make_request(), now=0.0))).points

    assert any(
        point.startswith("Shadow policy round-robin would have chosen a") for point in points
    )


def test_another_live_policy_begins_the_tallies_anew() -> None:
    router = shadowed("round-robin")
    serve(router, make_request(), now=0.0)
    recording = {"shadow_policies": ["round-robin"], "shadow_rate": 1.0}
    endpoints = (endpoint_dict("a", speed_class="slow"), endpoint_dict("b"))

    router.apply(make_document(*endpoints, version=2, recording=recording), now=1.0)
    same = router.snapshot(now=1.0)["shadow"]["round-robin"]["asked"]
    router.apply(
        make_document(*endpoints, version=3, recording=recording, policy={"name": "random"}),
        now=2.0,
    )

    assert same == 1
    assert router.snapshot(now=2.0)["shadow"]["round-robin"]["asked"] == 0
