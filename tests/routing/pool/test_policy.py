"""Policies by name on one state, their memories, and what the document may ask for."""

from typing import get_args

import pytest

from routing.core.document import PolicyName
from routing.pool.policies.base import PeerPolicy
from routing.pool.policy import Policies
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router


def test_every_name_of_the_document_can_decide() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"), role_mode="unified")

    for name in get_args(PolicyName):
        decision = router.decide(make_request(), now=1.0, policy=name)

        assert decision.destination in ("a", "b")
        assert decision.policy == name


def test_a_shadow_sees_the_requests_that_another_policy_sent() -> None:
    router = make_router(
        *(endpoint_dict(name) for name in "abc"),
        role_mode="unified",
        policy={"name": "round-robin"},
        recording={"shadow_policies": ["sglang-cache-aware"]},
    )
    request = make_request()
    live = router.decide(request, now=1.0)
    router.begin(request, live, now=1.0)

    shadow = router.decide(request, now=2.0, policy="sglang-cache-aware")

    assert shadow.destination == live.destination
    assert shadow.reason.endswith("longest match")


def test_a_policy_that_nobody_names_is_not_told_of_anything() -> None:
    assert not _made(Policies(make_document(endpoint_dict("a"), role_mode="unified")))


def test_the_first_prefill_endpoint_makes_other_profiles() -> None:
    entry = {"name": "llm-d-weighted"}
    unified = make_document(endpoint_dict("a"), role_mode="unified", policy=entry)
    policies = Policies(unified)
    before = _made(policies)["llm-d-weighted"]

    policies.install(make_document(endpoint_dict("a"), policy=entry))
    same = _made(policies)["llm-d-weighted"]
    policies.install(make_document(endpoint_dict("a", role="prefill"), policy=entry))

    assert same is before
    assert _made(policies)["llm-d-weighted"] is not before


@pytest.mark.parametrize("name", ["least-requests", "llm-d-token-aware", "dynamo"])
def test_loads_that_a_policy_sees_end_with_their_requests(name: str) -> None:
    router = make_router(
        endpoint_dict("a"), endpoint_dict("b"), role_mode="unified", policy={"name": name}
    )
    leases = []
    for turn in range(6):
        request = make_request(f"{turn} " * 900, id=f"r{turn}")
        decision = router.decide(request, now=float(turn))
        leases.append(router.begin(request, decision, now=float(turn)))
    for lease in leases:
        router.end(lease, now=9.0, outcome="aborted")
        router.end(lease, now=9.0, outcome="aborted")

    memory = _made(router.policies)[name].memory
    assert memory.tokens_in_flight(router._known.table).sum() == 0


def _made(policies: Policies) -> dict[str, PeerPolicy]:
    return policies._made
