"""A replay decides as the router did, and differs only by what was changed."""

import contextlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.decision import Decision
from routing.core.record import record_of
from routing.core.signals import EngineSignals
from routing.pool.recording import luck, lucky
from routing.pool.replay import ReplayError, replay
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import (
    endpoint_dict,
    make_document,
    make_request,
    make_router,
    serve,
)

POLICIES = ["consort", "random", "least-requests", "round-robin"]


def recorded(decision: Decision) -> dict[str, Any]:
    """What comes back after a way through JSON."""
    record: dict[str, Any] = json.loads(json.dumps(record_of(decision), allow_nan=False))
    return record


def fleet(roles: list[str], rng: np.random.Generator) -> PoolRouter:
    """A pool in the middle of its work: hits, load, foreign work, an open breaker, a ramp."""
    names = [f"{role}-{number}" for number, role in enumerate(roles)]
    router = make_router(
        *(
            endpoint_dict(
                name,
                role=role,
                speed_class=str(rng.choice(["fast", "slow"])),
                ramp_seconds=float(rng.choice([0.0, 30.0])),
            )
            for name, role in zip(names, roles, strict=True)
        )
    )
    now = 0.0
    for turn in range(int(rng.integers(1, 40))):
        now += float(rng.random())
        request = make_request(f"group {turn % 4} " * 900, id=f"r-{turn}")
        decision = router.decide(request, now=now)
        if decision.destination is None:
            continue
        lease = router.begin(request, decision, now=now)
        if rng.random() < 0.5:
            router.first_token(lease, now=now + 0.2)
            router.end(
                lease, now=now + 1.0, outcome="ok", prompt_tokens=request.parsed.prompt_tokens,
                cached_tokens=int(rng.integers(0, 500)), completion_tokens=40,
            )  # fmt: skip
    for name in names:
        if rng.random() < 0.5:
            signals = EngineSignals(
                running=int(rng.integers(0, 20)), waiting=int(rng.integers(0, 5)), kv_usage=0.4
            )
            router.observe(name, signals, now=now)
    if rng.random() < 0.5:
        router.failed(str(rng.choice(names)), "connect", now=now)
    return router


@settings(max_examples=60, deadline=None)
@given(
    roles=st.lists(st.sampled_from(["both", "prefill", "decode"]), min_size=1, max_size=8),
    seed=st.integers(0, 2**32),
    policy=st.sampled_from(POLICIES),
)
def test_an_unchanged_replay_gives_the_same_decision(
    roles: list[str], seed: int, policy: str
) -> None:
    router = fleet(roles, np.random.default_rng(seed))
    request = make_request("group 1 " * 900, id="asked")
    decision = router.decide(request, now=60.0, policy=policy, keep="always")

    again = replay(recorded(decision), router.document).decision

    assert (again.destination, again.prefill) == (decision.destination, decision.prefill)
    assert (again.refusal is None) == (decision.refusal is None)
    assert set(again.rejected) == set(decision.rejected)
    if policy == "consort" and decision.destination:
        assert again.fallbacks == decision.fallbacks
        assert again.margin_seconds == decision.margin_seconds
        before, after = recorded(decision), recorded(again)
        assert before["candidates"] == after["candidates"]
        assert before["predicted"] == after["predicted"]


def test_an_unchanged_replay_of_a_large_pool_gives_the_same_decision() -> None:
    router = make_router(*(endpoint_dict(f"e{number}") for number in range(200)))
    for turn in range(50):
        serve(router, make_request(f"group {turn} " * 900, id=f"r{turn}"), now=float(turn))
    decision = router.decide(make_request("another " * 900), now=60.0, keep="always")

    replayed = replay(recorded(decision), router.document)

    assert replayed.decision.destination == decision.destination
    assert "endpoints-not-recorded" in replayed.unknown


def test_a_removed_endpoint_leaves_the_runner_up() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b", speed_class="slow"))
    decision = router.decide(make_request(), now=0.0, keep="always")

    again = replay(recorded(decision), router.document, remove=["a"]).decision

    assert (decision.destination, again.destination) == ("a", "b")
    assert again.rejected == {"a": "avoided"}


@pytest.mark.lesson("T02")
def test_a_forced_endpoint_is_chosen_unless_a_hard_filter_forbids_it() -> None:
    router = make_router(
        endpoint_dict("a"),
        endpoint_dict("b", speed_class="slow"),
        endpoint_dict("out", state="draining"),
    )
    record = recorded(router.decide(make_request(), now=0.0, keep="always"))

    forced = replay(record, router.document, force="b").decision
    forbidden = replay(record, router.document, force="out").decision

    assert forced.destination == "b"
    assert forced.rejected == {"a": "not-forced", "out": "state"}
    assert forbidden.destination is None
    assert forbidden.refusal is not None


def test_another_policy_decides_on_the_same_state() -> None:
    router = make_router(endpoint_dict("a", speed_class="slow"), endpoint_dict("b"))
    record = recorded(router.decide(make_request(), now=0.0, keep="always"))

    answers = {replay(record, router.document, policy="random").decision.policy}
    turn = replay(record, router.document, policy="round-robin")

    assert answers == {"random"}
    assert turn.decision.destination == "a"
    assert "state-of-round-robin" in turn.unknown


def test_another_document_brings_its_own_rules() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b", speed_class="slow"))
    record = recorded(router.decide(make_request(), now=0.0, keep="always"))
    drained = make_document(endpoint_dict("a", state="draining"), endpoint_dict("b"), version=2)
    restarted = make_document(endpoint_dict("a", instance="2"), endpoint_dict("b"), version=3)

    assert replay(record, drained).decision.rejected == {"a": "state"}
    later = replay(record, restarted)
    assert later.decision.rejected == {"a": "not-recorded"}
    assert "endpoints-not-recorded" in later.unknown


def test_a_refusal_by_limits_stands_because_no_record_holds_them() -> None:
    router = make_router(endpoint_dict("a"), tenants=[{"tenant": "tenant-a", "concurrency": 1}])
    first = make_request(id="first")
    router.begin(first, router.decide(first, now=0.0), now=0.0)
    decision = router.decide(make_request(id="second"), now=0.1, keep="refusals")

    replayed = replay(recorded(decision), router.document)

    assert replayed.decision.refusal == decision.refusal is not None
    assert "limits-and-queue" in replayed.unknown


def test_a_record_without_inputs_is_refused_with_a_sentence() -> None:
    router = make_router(endpoint_dict("a"))
    record = recorded(router.decide(make_request(), now=0.0))

    with pytest.raises(ReplayError, match="kept without its inputs"):
        replay(record, router.document)
    with pytest.raises(ReplayError, match="no decision record"):
        replay({"id": 3}, router.document)
    kept = recorded(router.decide(make_request(), now=0.0, keep="always"))
    with pytest.raises(ReplayError, match="'nobody' is not in document version 1"):
        replay(kept, router.document, force="nobody")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("instances", ["a-1"]),
        ("endpoints", []),
        ("columns", {"prefill_tokens": [1e308, 1e308]}),
        ("columns", {"step_seconds": [-1.0, 0.0]}),
        ("hits", {"indexed": [1.0]}),
    ],
)
def test_a_record_that_makes_no_sense_is_refused_or_decided_but_never_an_accident(
    part: str, value: Any
) -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    record = recorded(router.decide(make_request(), now=0.0, keep="always"))
    record["inputs"][part] = value

    with contextlib.suppress(ReplayError):
        replay(record, router.document)


@pytest.mark.parametrize("text", ["", "pcg64", "pcg64:x:y:0:0", "mt:1:1:0:0", "pcg64:1:1:0"])
def test_luck_that_cannot_be_read_is_none(text: str) -> None:
    assert lucky(text) is None


def test_luck_goes_on_where_it_stood() -> None:
    rng = np.random.default_rng(3)
    rng.random(7)
    again = lucky(luck(rng))

    assert again is not None
    assert again.permutation(20).tolist() == rng.permutation(20).tolist()
