"""What every policy promises, whatever its rule: candidates only, bounded, repeatable."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.document import PolicyName
from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router

NAMES = [name for name in get_args(PolicyName) if name not in ("consort", "weighted")]
PROFILE = {"name": "weighted", "profiles": [{"plugins": [{"type": "queue-scorer"}]}]}


def unified(policy: str, count: int = 4, **overrides: Any) -> PoolRouter:
    entry = PROFILE if policy == "weighted" else {"name": policy}
    endpoints = [endpoint_dict(f"e{row}") for row in range(count)]
    return make_router(*endpoints, role_mode="unified", policy=entry, **overrides)


def pairs(policy: str) -> PoolRouter:
    roles = ["prefill", "prefill", "decode", "decode"]
    endpoints = [endpoint_dict(f"e{row}", role=role) for row, role in enumerate(roles)]
    return make_router(*endpoints, policy={"name": policy})


def run(router: PoolRouter, turns: list[tuple[int, int]]) -> list[tuple[str | None, str | None]]:
    """Requests of some groups, every other one stays open for a while."""
    chosen, leases = [], []
    for turn, (group, user) in enumerate(turns):
        request = make_request(f"{group} " * 900, session=f"s{user}", id=f"r{turn}")
        decision = router.decide(request, now=float(turn))
        chosen.append((decision.destination, decision.prefill))
        leases.append(router.begin(request, decision, now=float(turn)))
        if turn % 2:
            router.end(leases.pop(0), now=turn + 0.5, outcome="ok", completion_tokens=3)
    for lease in leases:
        router.end(lease, now=100.0, outcome="aborted")
    return chosen


TURNS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12)


@pytest.mark.parametrize("policy", [*NAMES, "weighted"])
@given(turns=TURNS)
@settings(max_examples=8, deadline=None)
def test_the_same_inputs_and_seed_give_the_same_decisions(
    policy: str, turns: list[tuple[int, int]]
) -> None:
    first, second = run(unified(policy), turns), run(unified(policy), turns)

    assert first == second
    assert all(destination is not None for destination, _ in first)


@pytest.mark.parametrize("policy", NAMES)
@given(turns=TURNS)
@settings(max_examples=8, deadline=None)
def test_pairs_are_made_of_a_prefill_and_a_decode_endpoint(
    policy: str, turns: list[tuple[int, int]]
) -> None:
    for destination, prefill in run(pairs(policy), turns):
        assert destination in ("e2", "e3")
        assert prefill in ("e0", "e1", None)


@pytest.mark.parametrize("policy", [*NAMES, "weighted"])
def test_an_endpoint_that_a_hard_filter_removed_is_never_chosen(policy: str) -> None:
    router = unified(policy)
    for turn in range(30):
        request = make_request(f"{turn % 3} " * 900, session=f"s{turn % 5}")

        decision = router.decide(request, now=float(turn), exclude=frozenset({"e0", "e2"}))

        assert decision.destination in ("e1", "e3")
        assert not {"e0", "e2"} & set(decision.fallbacks)
        router.begin(request, decision, now=float(turn))


@pytest.mark.lesson("W25")
@pytest.mark.parametrize("policy", [*NAMES, "weighted"])
def test_one_endpoint_without_any_signal_is_used(policy: str) -> None:
    decision = unified(policy, count=1).decide(make_request(), now=1.0)

    assert (decision.destination, decision.fallbacks) == ("e0", ())


@pytest.mark.parametrize("policy", [*NAMES, "weighted"])
def test_a_policy_answers_beside_another_and_changes_nothing(policy: str) -> None:
    watched, alone = unified("least-requests"), unified("least-requests")
    request = make_request()

    for turn in range(10):
        watched.decide(request, now=float(turn), policy=policy)
    watched.draw_from(alone._rng)

    assert watched.leases_open == 0
    assert watched.snapshot(now=20.0)["leases_open"] == 0


@pytest.mark.parametrize("policy", ["llm-d-weighted", "llm-d-precise"])
def test_a_repeated_prompt_goes_where_it_was(policy: str) -> None:
    router = unified(policy)
    for endpoint in router.document.endpoints:
        router.observe(endpoint.id, EngineSignals(running=1, waiting=0, kv_usage=0.1), now=0.0)
    request = make_request()
    decision = router.decide(request, now=0.5)
    lease = router.begin(request, decision, now=0.5)
    router.end(lease, now=0.6, outcome="ok", completion_tokens=3)

    again = {router.decide(request, now=0.7).destination for _ in range(20)}

    assert again == {decision.destination}


@pytest.mark.parametrize("policy", NAMES)
def test_a_document_with_other_endpoints_is_followed(policy: str) -> None:
    router = unified(policy)
    run(router, [(1, 1), (2, 2), (1, 1)])

    router.apply(
        make_document(
            endpoint_dict("e3"), endpoint_dict("e9"), role_mode="unified", version=2,
            policy={"name": policy},
        ),
        now=50.0,
    )  # fmt: skip

    assert {destination for destination, _ in run(router, [(1, 1), (2, 2), (3, 0)])} <= {"e3", "e9"}


def test_knowledge_is_forgotten_on_request() -> None:
    router = unified("sglang-cache-aware")
    run(router, [(1, 1)] * 4)

    router.reset_knowledge(now=20.0)

    decision = router.decide(make_request("1 " * 900), now=21.0)
    assert decision.reason.endswith("no long match: fewest requests")
