"""Another destination for a prompt that is computed already, and where its KV counts."""

from typing import Any

import msgspec
import pytest

from routing.core.decision import Decision
from routing.pool.handover import served_by
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import CONTRACT, endpoint_dict, make_request, make_router

NAMES = {"p1": "prefill", "p2": "prefill", "d1": "decode", "d2": "decode", "d3": "decode"}
LONG = make_request("word " * 6000)


def pool(**changes: dict[str, Any]) -> PoolRouter:
    return make_router(
        *(endpoint_dict(name, role=role) | changes.get(name, {}) for name, role in NAMES.items())
    )


def decided(router: PoolRouter) -> Decision:
    decision = router.decide(LONG, now=0.0, policy="round-robin")
    assert (decision.prefill, decision.destination) == ("p1", "d1")
    return decision


def handed_on(router: PoolRouter, first: Decision | None = None, *out: str) -> str | None:
    first = first or decided(router)
    decision = router.hand_on(first, exclude=frozenset({"d1", *out}), now=0.1)
    return None if decision is None else decision.destination


def test_shadow_policies_are_counted_with_the_first_destination_only() -> None:
    document = {"recording": {"shadow_policies": ["random"], "shadow_rate": 1.0}}
    endpoints = (endpoint_dict(name, role=role) for name, role in NAMES.items())
    router = make_router(*endpoints, **document)
    first = decided(router)
    again = router.hand_on(first, exclude=frozenset({"d1"}), now=0.1)
    assert again is not None

    for decision in (first, again, served_by(first, "d2")):
        router.begin(LONG, decision, now=0.2)

    assert router.snapshot(now=0.3)["shadow"]["random"]["asked"] == 1


def test_the_next_fallback_gets_the_ticket() -> None:
    router = pool()
    first = decided(router)

    second = router.hand_on(first, exclude=frozenset({"d1"}), now=0.1)

    assert second is not None
    assert (second.prefill, second.destination) == ("p1", "d2")
    assert second.fallbacks == ("d3",)
    assert second.predicted.uncached_tokens == 0
    assert (second.reason, second.refusal) == ("its prompt is computed already", None)
    assert second.id != first.id


@pytest.mark.parametrize(
    ("d2", "expected"),
    [
        pytest.param({}, "d2", id="like-the-first"),
        pytest.param({"state": "draining"}, "d3", id="draining"),
        pytest.param({"role_group": "green"}, "d3", id="another-role-group"),
        pytest.param({"jurisdiction": "US"}, "d3", id="another-jurisdiction"),
        pytest.param({"kv_contract": CONTRACT | {"model_revision": "r2"}}, "d3", id="revision"),
    ],
)
def test_only_where_a_pair_may_be(d2: dict[str, Any], expected: str) -> None:
    assert handed_on(pool(d2=d2)) == expected


def test_not_where_it_failed_already_nor_at_a_breaker() -> None:
    router = pool()
    first = decided(router)
    router.failed("d2", "connect", now=0.0)

    assert handed_on(router, first) == "d3"
    assert handed_on(router, first, "d3") is None


def test_not_over_a_pair_that_is_out() -> None:
    router = pool()
    for _ in range(2):
        router.failed("d2", "kv_transfer", now=0.0, prefill_id="p1")

    assert handed_on(router) == "d3"


def test_nothing_is_learned_of_speeds_from_a_prompt_that_was_there() -> None:
    router = pool()
    decision = router.hand_on(decided(router), exclude=frozenset({"d1"}), now=0.1)
    assert decision is not None
    before = router.snapshot(now=0.1)["endpoints"][0]["speeds"]

    lease = router.begin(LONG, decision, now=0.1)
    router.prompt_is_there(lease, now=0.1)
    router.prefill_done(lease, now=0.2, prompt_tokens=6000, cached_tokens=0)

    assert router.snapshot(now=0.2)["endpoints"][0]["speeds"] == before
    assert router._known.table.prefill_tokens.tolist() == [0] * len(NAMES)


@pytest.mark.lesson("W26")
def test_a_prompt_on_its_way_is_believed_where_it_is_computed() -> None:
    router = pool()
    lease = router.begin(LONG, decided(router), now=0.0)
    table = router._known.table

    def held() -> dict[str, bool]:
        hits = router._known.hits(LONG).indexed
        return {name: bool(hits[table.row_of[name]] > 0) for name in ("p1", "d1", "d2")}

    under_way = held()
    router.prefill_done(lease, now=1.0, prompt_tokens=6000, cached_tokens=0)
    computed = held()
    router.first_token(lease, now=2.0)

    assert under_way == computed == {"p1": True, "d1": False, "d2": False}
    assert held() == {"p1": True, "d1": True, "d2": False}


@pytest.mark.lesson("W06")
def test_a_pair_of_two_vendors_cards_works_by_its_contract() -> None:
    staged = CONTRACT | {"staging_device": "cpu"}
    router = make_router(
        endpoint_dict("p", role="prefill", vendor="amd", speed_class="slow", kv_contract=staged),
        endpoint_dict(
            "d",
            role="decode",
            vendor="nvidia",
            kv_contract=staged | {"attention_backend": "ROCM"},
        ),
    )

    decision = router.decide(LONG, now=0.0, policy="round-robin")

    assert (decision.prefill, decision.destination) == ("p", "d")
    verdict = router._known.pairs.verdicts[0][0]
    assert (verdict.verdict, verdict.staging) == ("compatible_with", "cpu")


@pytest.mark.parametrize(("is_streamed", "carried"), [(True, True), (False, False)])
def test_what_is_handed_on_goes_over_the_links_until_its_first_token_is_told(
    *, is_streamed: bool, carried: bool
) -> None:
    router = pool()
    decision = router.hand_on(decided(router), exclude=frozenset({"d1"}), now=0.1)
    assert decision is not None
    parsed = msgspec.structs.replace(LONG.parsed, stream=is_streamed)

    lease = router.begin(msgspec.structs.replace(LONG, parsed=parsed), decision, now=0.1)
    router.prompt_is_there(lease, now=0.1)
    table, links = router._known.table, router._known.links

    assert bool(table.incoming_tokens[table.row_of["d2"]] > 0) == carried
    assert bool(links._on_wire) == carried
    router.first_token(lease, now=0.2)
    assert not table.incoming_tokens.any()
    assert links._on_wire == {}
