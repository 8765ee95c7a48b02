"""Choices of somebody else's gateway: priced as ours, compared with ours, never limited."""

import msgspec
import pytest

from routing.core.decision import Decision
from routing.core.record import record_of
from routing.explain.explanation import explain
from routing.pool.replay import replay
from routing.pool.router import PoolRouter
from routing.pool.shadow import GATEWAY
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router


def looking_on(*, own: str = "consort") -> PoolRouter:
    router = make_router(
        endpoint_dict("a", speed_class="slow"),
        endpoint_dict("b"),
        endpoint_dict("drained", state="draining"),
        recording={"shadow_policies": ["round-robin"], "shadow_rate": 0.0},
        policy={"name": own},
        tenants=[{"tenant": "tenant-a", "is_suspended": True}],
    )
    router.shadows.observe()
    return router


def choice(router: PoolRouter, name: str, *, at: float = 0.0) -> Decision | None:
    return router.observing.decision(make_request(), destination=name, keep="always", now=at)


def test_our_own_policy_and_its_shadows_are_asked_about_the_gateways_choice() -> None:
    router = looking_on()

    decision = choice(router, "a")

    assert decision is not None
    assert (decision.destination, decision.policy, decision.reason) == (
        "a",
        GATEWAY,
        "the gateway's choice",
    )
    ours, _ = decision.shadows
    assert (ours.policy, ours.destination, ours.agrees) == ("consort", "b", False)
    assert ours.regret_seconds < 0
    assert ours.live_ttft_seconds == decision.predicted.ttft_seconds > ours.ttft_seconds


def test_a_choice_counts_and_weighs_like_one_of_ours_until_it_ends() -> None:
    router = looking_on()
    decision = choice(router, "a")
    assert decision is not None

    lease = router.begin(make_request(), decision, now=0.0)
    during = int(router._known.table.requests[0])
    router.end(lease, now=1.0, outcome="ok", prompt_tokens=10, completion_tokens=3)

    assert (during, int(router._known.table.requests[0])) == (1, 0)
    assert router.shadows.live == GATEWAY
    tallies = router.shadows.describe()
    assert {name: told["asked"] for name, told in tallies.items()} == {
        "consort": 1,
        "round-robin": 1,
    }


@pytest.mark.parametrize("name", ["nobody", "drained"])
def test_an_endpoint_that_the_pool_could_not_have_chosen_is_not_compared(name: str) -> None:
    assert choice(looking_on(), name) is None


def test_while_it_looks_on_our_own_decisions_ask_no_shadow() -> None:
    router = make_router(
        endpoint_dict("a"), recording={"shadow_policies": ["random"], "shadow_rate": 1.0}
    )
    before = router.decide(make_request(), now=0.0).shadows
    router.shadows.observe()

    assert len(before) == 1
    assert router.decide(make_request(), now=0.0).shadows == ()


def test_another_document_asks_its_own_policies() -> None:
    router = looking_on()

    router.apply(make_document(endpoint_dict("a"), policy={"name": "random"}, version=2), now=1.0)

    assert set(router.shadows.describe()) == {"random"}
    assert router.shadows.live == GATEWAY


def test_a_record_is_explained_and_replayed_by_the_documents_own_policy() -> None:
    router = looking_on()
    decision = choice(router, "a")
    assert decision is not None
    record = record_of(decision)
    document = msgspec.structs.replace(router.document, tenants=())

    again = replay(msgspec.json.decode(msgspec.json.encode(record)), document).decision

    assert again.destination == "b"
    for language in ("en", "ko"):
        assert explain(record, language=language)
