"""Profiles as llm-d runs them, what they refuse, and how they make pairs."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.document import DocumentError, Policy, parse_document
from routing.core.signals import EngineSignals
from routing.pool import policy as policies
from routing.pool.policies.plugins import FILTERS, PICKERS, SCORERS
from routing.pool.policies.weighted import WeightedPolicy
from routing.pool.router import PoolRouter
from tests.routing.contexts import make_context
from tests.routing.pool.builders import (
    document_dict,
    endpoint_dict,
    make_document,
    make_request,
    make_router,
)

ALWAYS = {"type": "always-disagg-pd-decider"}


def weighted(*plugins: Any, outside: tuple[Any, ...] = (), **profiles: Any) -> dict[str, Any]:
    """A policy entry: the plugins of the default profile, or profiles by name."""
    listed = [{"plugins": list(plugins)}] if plugins else []
    listed += [{"name": name, "plugins": list(found)} for name, found in profiles.items()]
    return {"name": "weighted", "plugins": list(outside), "profiles": listed}


def scorer(name: str, weight: float = 1.0, **parameters: Any) -> dict[str, Any]:
    return {"type": name, "weight": weight, "parameters": parameters}


def handler(**parameters: Any) -> dict[str, Any]:
    return {"type": "disagg-profile-handler", "parameters": parameters}


def compiled(entry: dict[str, Any]) -> WeightedPolicy:
    document = make_document(endpoint_dict("a"), role_mode="unified", policy=entry)
    return WeightedPolicy(document.policy)


def test_weights_are_those_of_the_document() -> None:
    state = {"waiting": [0, 10, 10], "kv_usage": [0.9, 0.0, 0.0], "shares": [0.0, 0.0, 0.5]}
    queue, kv = scorer("queue-scorer", 2), scorer("kv-cache-utilization-scorer", 2)

    without = compiled(weighted(queue, kv)).choose(make_context(3, **state))
    context = make_context(3, **state)
    entry = compiled(weighted(queue, kv, scorer("prefix-cache-scorer", 3)))
    context.memory.match(context, "")
    entry._memory = context.memory
    with_prefix = entry.choose(context)

    assert without.rows[0] == 0
    assert with_prefix.rows == [2, 0, 1]
    assert [(name, weight) for name, weight, _ in with_prefix.scores] == [
        ("queue-scorer", 2.0),
        ("kv-cache-utilization-scorer", 2.0),
        ("prefix-cache-scorer", 3.0),
    ]


@pytest.mark.lesson("W25")
def test_an_endpoint_without_metrics_is_neither_the_first_nor_the_last_choice() -> None:
    context = make_context(3, waiting=[0, np.nan, 10])

    ranking = compiled(weighted(scorer("queue-scorer"))).choose(context)

    assert ranking.rows == [0, 1, 2]


@pytest.mark.lesson("W16")
@pytest.mark.parametrize("requests", [[40, 3, 50], [3, 90, 4]])
def test_on_a_miss_load_decides(requests: list[int]) -> None:
    entry = weighted(scorer("prefix-cache-scorer", 3), scorer("active-request-scorer"))

    ranking = compiled(entry).choose(make_context(3, requests=requests))

    assert ranking.rows[0] == int(np.argmin(requests))


def test_filters_run_before_scores_and_their_candidates_are_the_only_ones() -> None:
    entry = weighted(
        {"type": "label-selector-filter", "parameters": {"matchLabels": {"tier": "fast"}}},
        scorer("queue-scorer"),
    )
    context = make_context(3, labels=[{}, {"tier": "fast"}, {"tier": "fast"}], waiting=[0, 9, 5])

    ranking = compiled(entry).choose(context)

    assert ranking.rows == [2, 1]
    assert np.isnan(ranking.scores[0][2][0])


def test_when_filters_leave_nobody_the_request_is_refused_with_the_filters_name() -> None:
    entry = weighted({"type": "by-label", "parameters": {"label": "zone", "validValues": ["x"]}})
    router = make_router(endpoint_dict("a"), role_mode="unified", policy=entry)

    decision = router.decide(make_request(), now=1.0)

    assert decision.destination is None
    assert decision.refusal is not None
    assert (decision.refusal.status, decision.refusal.code) == (503, "no-capacity")
    assert "by-label" in decision.refusal.message


def test_a_session_keeps_its_endpoint_for_the_stated_time() -> None:
    parameters = {"strategy": "session_id", "sessionIdConfig": {"evictionTtlSeconds": 60}}
    entry = weighted(scorer("session-affinity-scorer", 5, **parameters))
    endpoints = [endpoint_dict(f"e{row}") for row in range(8)]
    router = make_router(*endpoints, role_mode="unified", policy=entry)
    request = make_request(session="s1")
    first = router.decide(request, now=0.0)
    router.begin(request, first, now=0.0)

    within = {router.decide(request, now=50.0).destination for _ in range(20)}
    after = {router.decide(request, now=70.0).destination for _ in range(40)}

    assert within == {first.destination}
    assert len(after) > 1


def pool(entry: dict[str, Any], *, prefills: int = 2) -> PoolRouter:
    endpoints = [endpoint_dict(f"p{row}", role="prefill") for row in range(prefills)]
    endpoints += [endpoint_dict(f"d{row}", role="decode") for row in range(2)]
    return make_router(*endpoints, policy=entry)


@pytest.mark.parametrize("order", ["decode-first", "prefill-first"])
def test_a_handler_and_a_decider_make_pairs(order: str) -> None:
    entry = weighted(
        outside=(handler(stageOrder=order, deciders={"prefill": ALWAYS["type"]}), ALWAYS),
        prefill=[{"type": "prefill-filter"}, scorer("token-load-scorer")],
        decode=[{"type": "decode-filter"}, scorer("active-request-scorer")],
    )
    router = pool(entry)
    seen = Counter()
    for turn in range(8):
        request = make_request(f"{turn} " * 900, id=f"r{turn}")
        decision = router.decide(request, now=float(turn))
        seen[decision.destination, decision.prefill] += 1
        router.begin(request, decision, now=float(turn))

    assert {prefill for _, prefill in seen} == {"p0", "p1"}
    assert {destination for destination, _ in seen} == {"d0", "d1"}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({}, False, id="0-is-never"),
        pytest.param({"nonCachedTokens": 16}, True, id="enough-is-missing"),
        pytest.param({"nonCachedTokens": 10**6}, False, id="too-little-is-missing"),
        pytest.param({"nonCachedTokens": 16, "promptTokens": 10**6}, False, id="short-prompt"),
    ],
)
@pytest.mark.lesson("W25")
def test_the_prefix_based_decider(parameters: dict[str, Any], *, expected: bool) -> None:
    decider = {"type": "prefix-based-pd-decider", "parameters": parameters}
    entry = weighted(
        outside=(handler(deciders={"prefill": decider["type"]}), decider),
        prefill=[{"type": "prefill-filter"}],
        decode=[{"type": "decode-filter"}],
    )

    decision = pool(entry).decide(make_request(), now=1.0)

    assert (decision.prefill is not None) == expected


@pytest.mark.lesson("W26")
def test_a_prompt_that_the_destination_holds_stays_there() -> None:
    decider = {"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": 300}}
    entry = weighted(
        outside=(handler(deciders={"prefill": decider["type"]}), decider),
        prefill=[{"type": "prefill-filter"}],
        decode=[{"type": "decode-filter"}, scorer("prefix-cache-scorer", 3)],
    )
    router, request = pool(entry), make_request()
    first = router.decide(request, now=1.0)
    router.begin(request, first, now=1.0)

    again = router.decide(request, now=2.0)

    assert first.prefill is not None
    assert (again.destination, again.prefill) == (first.destination, None)


def test_without_a_decider_or_a_pair_the_prompt_stays_local() -> None:
    entry = weighted(outside=(handler(),), prefill=[scorer("queue-scorer")], decode=[])

    assert pool(entry).decide(make_request(), now=1.0).prefill is None


def refused(entry: dict[str, Any]) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        make_router(endpoint_dict("a"), role_mode="unified", policy=entry)
    return caught.value


@pytest.mark.parametrize(
    ("entry", "pointer"),
    [
        pytest.param(
            weighted(scorer("queue-scorrer")),
            "/policy/profiles/0/plugins/0/type",
            id="unknown-type",
        ),
        pytest.param(
            weighted(scorer("queue-scorer"), scorer("token-load-scorer", queueThresholdToken=5)),
            "/policy/profiles/0/plugins/1/parameters/queueThresholdToken",
            id="unknown-parameter",
        ),
        pytest.param(
            weighted(scorer("token-load-scorer", queueThresholdTokens="many")),
            "/policy/profiles/0/plugins/0/parameters/queueThresholdTokens",
            id="wrong-type-of-a-parameter",
        ),
        pytest.param(
            weighted(scorer("prefix-cache-scorer", prefixMatchInfoProducerName="mine")),
            "/policy/profiles/0/plugins/0/parameters/prefixMatchInfoProducerName",
            id="producer-that-nobody-stated",
        ),
        pytest.param(
            weighted({"type": "max-score-picker"}, {"type": "random-picker"}),
            "/policy/profiles/0/plugins",
            id="two-pickers",
        ),
        pytest.param(
            weighted(scorer("queue-scorer"), outside=({"type": "queue-scorer"},)),
            "/policy/plugins/0/type",
            id="scorer-outside-of-profiles",
        ),
        pytest.param(
            weighted(scorer("queue-scorer"), outside=(ALWAYS, ALWAYS)),
            "/policy/plugins/1/name",
            id="two-plugins-of-one-name",
        ),
        pytest.param(
            weighted(prefill=[], decode=[]), "/policy/profiles", id="profiles-without-a-handler"
        ),
        pytest.param(
            weighted(scorer("queue-scorer"), outside=(handler(),)),
            "/policy/profiles",
            id="handler-without-its-profiles",
        ),
        pytest.param(
            weighted(outside=(handler(deciders={"prefill": "x"}),), prefill=[], decode=[]),
            "/policy/plugins",
            id="decider-that-nobody-stated",
        ),
        pytest.param(weighted(outside=(ALWAYS,)), "/policy/profiles", id="plugins-without-profile"),
        pytest.param(
            weighted(scorer("queue-scorer"), outside=(scorer("inflight-load-producer", ratio=2),)),
            "/policy/plugins/0/parameters/ratio",
            id="unknown-parameter-of-what-the-router-does-anyway",
        ),
        pytest.param(
            weighted(scorer("utilization-filter")),
            "/policy/profiles/0/plugins/0/type",
            id="type-without-a-counterpart",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_field(entry: dict[str, Any], pointer: str) -> None:
    error = refused(entry)

    assert error.pointer == pointer
    assert error.message.endswith((".", "?"))


def test_a_refused_profile_leaves_the_policy_in_force() -> None:
    router = make_router(endpoint_dict("a"), role_mode="unified")
    entry = weighted(scorer("no-such-scorer"))
    document = make_document(endpoint_dict("a"), role_mode="unified", version=2, policy=entry)

    with pytest.raises(DocumentError):
        router.apply(document, now=1.0)

    assert router.document.version == 1
    assert router.decide(make_request(), now=2.0).destination == "a"


def test_profiles_are_checked_even_while_another_policy_decides() -> None:
    entry = weighted(scorer("no-such-scorer")) | {"name": "consort"}
    raw = document_dict(endpoint_dict("a"), role_mode="unified", policy=entry)

    with pytest.raises(DocumentError):
        policies.check(parse_document(json.dumps(raw).encode()))


def test_without_profiles_it_is_llm_ds_default() -> None:
    router = make_router(
        endpoint_dict("a"), endpoint_dict("b"), role_mode="unified", policy={"name": "weighted"}
    )
    router.observe("a", EngineSignals(running=1, waiting=9, kv_usage=0.5), now=0.9)
    router.observe("b", EngineSignals(running=1, waiting=0, kv_usage=0.5), now=0.9)

    assert router.decide(make_request(), now=1.0).destination == "b"


def test_a_policy_keeps_its_memory_when_the_document_changes_elsewhere() -> None:
    entry = Policy(name="llm-d-weighted")
    first = make_document(endpoint_dict("a"), role_mode="unified", policy={"name": entry.name})
    made = policies.Policies(first)
    before = made._made["llm-d-weighted"]

    made.install(
        make_document(endpoint_dict("b"), role_mode="unified", policy={"name": entry.name})
    )

    assert made._made["llm-d-weighted"] is before


REQUIRED = {"by-label": {"label": "zone", "allowsNoLabel": True}}
SOME = st.floats(0, 1000) | st.just(float("nan"))


def entries(names: Any, most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.builds(
        lambda name, weight: scorer(name, weight, **REQUIRED.get(name, {})),
        st.sampled_from(sorted(names)),
        st.floats(0, 10),
    )
    return st.lists(one, max_size=most, unique_by=lambda entry: entry["type"])


@given(
    filters=entries(FILTERS, 3),
    scorers=entries(SCORERS, 5),
    pickers=entries(PICKERS, 1),
    waiting=st.lists(SOME, min_size=5, max_size=5),
    usage=st.lists(st.floats(0, 1) | st.just(float("nan")), min_size=5, max_size=5),
    requests=st.lists(st.integers(0, 90), min_size=5, max_size=5),
    rows=st.lists(st.integers(0, 4), min_size=1, unique=True),
)
@settings(max_examples=60, deadline=None)
def test_any_profile_ranks_exactly_the_candidates_that_its_filters_keep(
    filters: list[dict[str, Any]],
    scorers: list[dict[str, Any]],
    pickers: list[dict[str, Any]],
    waiting: list[float],
    usage: list[float],
    requests: list[int],
    rows: list[int],
) -> None:
    context = make_context(
        5, rows=rows, waiting=waiting, running=waiting, kv_usage=usage, requests=requests,
        roles=["both", "prefill", "decode", "both", "decode"],
    )  # fmt: skip
    kept = set(rows)
    for entry in filters:
        if entry["type"] == "decode-filter":
            kept -= {1}
        if entry["type"] == "prefill-filter":
            kept &= {1}

    ranking = compiled(weighted(*filters, *scorers, *pickers, {"type": "queue-scorer"})).choose(
        context
    )

    assert sorted(ranking.rows) == sorted(kept)
    assert bool(ranking.emptied_by) == (not kept)
