"""Hard filters: nothing overrides them, whatever the policy."""

import pytest

from tests.routing.pool.builders import CONTRACT, crowd, endpoint_dict, make_request, make_router

POLICIES = ["random", "round-robin", "least-requests", "consort"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_prefill_endpoint_never_answers(policy: str) -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))

    decisions = [router.decide(make_request(), now=0.0, policy=policy) for _ in range(20)]

    assert {decision.destination for decision in decisions} == {"d"}


def test_an_endpoint_of_both_roles_computes_its_own_prompts() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("b", role="both"))
    crowd(router, 20)

    decision = router.decide(make_request("word " * 6000), now=1.0)

    assert (decision.destination, decision.prefill) == ("b", None)


@pytest.mark.parametrize(
    ("prefill", "rules", "expected"),
    [
        pytest.param({}, {}, "p", id="equal-contracts"),
        pytest.param({"kv_dtype": "fp8"}, {}, None, id="another-kv-dtype"),
        pytest.param({"kv_dtype": None}, {}, None, id="unknown-is-not-used"),
        pytest.param(
            {"kv_dtype": None}, {"allow_unknown_pairs": True}, "p", id="unknown-when-allowed"
        ),
        pytest.param({"staging_device": "cpu"}, {}, "p", id="staged"),
        pytest.param(
            {"staging_device": "cpu"}, {"allow_staging": False}, None, id="staging-not-allowed"
        ),
    ],
)
def test_pairs_are_used_within_the_kv_contract_only(
    prefill: dict[str, object], rules: dict[str, object], expected: str | None
) -> None:
    router = make_router(
        endpoint_dict("p", role="prefill", kv_contract=CONTRACT | prefill),
        endpoint_dict("d", role="decode"),
        disaggregation=rules,
    )
    crowd(router, 20)

    decisions = [
        router.decide(make_request("word " * 6000), now=1.0, policy=policy) for policy in POLICIES
    ]

    assert {decision.prefill for decision in decisions} == {expected}


@pytest.mark.parametrize("policy", POLICIES)
def test_jurisdictions_bind_the_destination_and_the_prefill_endpoint(policy: str) -> None:
    router = make_router(
        endpoint_dict("p-us", role="prefill", jurisdiction="US"),
        endpoint_dict("p-kr", role="prefill"),
        endpoint_dict("d-us", role="decode", jurisdiction="US"),
        endpoint_dict("d-kr", role="decode"),
        endpoint_dict("d-none", role="decode", jurisdiction=None),
    )
    crowd(router, 40)
    request = make_request("word " * 6000, jurisdictions=("KR",))

    decisions = [router.decide(request, now=1.0, policy=policy) for _ in range(30)]

    assert {decision.destination for decision in decisions} == {"d-kr"}
    assert {decision.prefill for decision in decisions} == {"p-kr"}
    assert decisions[0].rejected["d-none"] == "jurisdiction"


def test_a_restricted_tenant_gets_no_pair_across_a_border() -> None:
    router = make_router(
        endpoint_dict("p", role="prefill", jurisdiction="JP"), endpoint_dict("d", role="decode")
    )
    crowd(router, 20)
    request = make_request("word " * 6000, jurisdictions=("KR", "JP"))

    decision = router.decide(request, now=1.0)

    assert (decision.destination, decision.prefill) == ("d", None)


def test_jurisdictions_of_the_tenants_entry_hold_without_the_caller_saying_so() -> None:
    router = make_router(
        endpoint_dict("kr"),
        endpoint_dict("us", jurisdiction="US"),
        tenants=[{"tenant": "tenant-a", "jurisdictions": ["US"]}],
    )

    decisions = [router.decide(make_request(), now=0.0) for _ in range(10)]

    assert {decision.destination for decision in decisions} == {"us"}


def test_excluded_endpoints_are_out_of_every_part_of_a_decision() -> None:
    router = make_router(
        endpoint_dict("p", role="prefill"),
        endpoint_dict("d", role="decode"),
        endpoint_dict("d2", role="decode"),
    )
    crowd(router, 40)

    decision = router.decide(make_request("word " * 6000), now=1.0, exclude=frozenset(("p", "d")))

    assert (decision.destination, decision.prefill, decision.fallbacks) == ("d2", None, ())


def test_prompts_too_long_for_an_endpoint_go_to_a_longer_one() -> None:
    router = make_router(
        endpoint_dict("short", max_model_len=1024), endpoint_dict("long", max_model_len=9216)
    )

    decisions = [router.decide(make_request("word " * 3000), now=0.0) for _ in range(10)]

    assert {decision.destination for decision in decisions} == {"long"}
    assert decisions[0].rejected == {"short": "context-length"}


@pytest.mark.parametrize("policy", POLICIES)
def test_operators_bind_the_destination_and_the_prefill_endpoint(policy: str) -> None:
    router = make_router(
        endpoint_dict("p-x", role="prefill", operator="X"),
        endpoint_dict("p-y", role="prefill", operator="Y"),
        endpoint_dict("d-x", role="decode", operator="X"),
        endpoint_dict("d-y", role="decode", operator="Y"),
        endpoint_dict("d-none", role="decode"),
        tenants=[{"tenant": "tenant-a", "operators": ["Y"]}],
    )
    for turn in range(40):
        request = make_request(f"{turn} crowd " * 20, max_tokens=1000, id=f"crowd-{turn}")
        lease = router.begin(request, router.decide(request, now=0.0), now=0.0)
        router.first_token(lease, now=0.0)

    decisions = [
        router.decide(make_request("word " * 6000), now=1.0, policy=policy) for _ in range(20)
    ]

    assert {decision.destination for decision in decisions} == {"d-y"}
    assert {decision.prefill for decision in decisions} == {"p-y"}
    assert decisions[0].rejected == {"p-x": "operator", "d-x": "operator", "d-none": "operator"}


@pytest.mark.lesson("W01")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_model_gets_the_capabilities_it_requires(policy: str) -> None:
    models = [
        {"name": "granite", "max_model_len": 9216},
        {"name": "big", "max_model_len": 9216, "requires": ["fp8", "memory-141g"]},
    ]
    router = make_router(
        endpoint_dict("small", capabilities=["fp8"]),
        endpoint_dict("large", capabilities=["fp8", "memory-141g", "nvlink"]),
        endpoint_dict("silent"),
        models=models,
    )

    big = [router.decide(make_request(model="big"), now=0.0, policy=policy) for _ in range(10)]
    any_ = {
        router.decide(make_request(f"{turn}"), now=0.0, policy=policy).destination
        for turn in range(60)
    }

    assert {decision.destination for decision in big} == {"large"}
    assert big[0].fallbacks == ()
    assert big[0].rejected == {"small": "capability", "silent": "capability"}
    assert any_ == {"small", "large", "silent"}


@pytest.mark.lesson("W01")
def test_a_capability_that_nobody_has_is_no_capacity_not_a_policy() -> None:
    models = [{"name": "granite", "max_model_len": 9216, "requires": ["fp4"]}]
    router = make_router(endpoint_dict("a"), models=models)

    refusal = router.decide(make_request(), now=0.0).refusal

    assert refusal is not None
    assert (refusal.status, refusal.rule) == (503, "capability")


def test_an_adapter_goes_where_it_can_be_served() -> None:
    models = [
        {"name": "granite", "max_model_len": 9216},
        {"name": "granite-legal", "max_model_len": 9216, "adapter_of": "granite"},
    ]
    router = make_router(
        endpoint_dict("every"),
        endpoint_dict("legal", adapters=["granite-legal"]),
        endpoint_dict("other", adapters=["granite-medical"]),
        models=models,
    )

    adapted = {
        router.decide(make_request(f"{turn}", model="granite-legal"), now=0.0).destination
        for turn in range(40)
    }
    base = router.decide(make_request(), now=0.0)

    assert adapted == {"every", "legal"}
    assert base.rejected == {}


def test_the_longest_answer_counts_towards_the_context() -> None:
    router = make_router(
        endpoint_dict("short", max_model_len=1024), endpoint_dict("long", max_model_len=9216)
    )

    brief = {router.decide(make_request(f"{turn}"), now=0.0).destination for turn in range(40)}
    wordy = router.decide(make_request("hello", max_tokens=2000), now=0.0)

    assert brief == {"short", "long"}
    assert (wordy.destination, wordy.rejected) == ("long", {"short": "context-length"})


def test_the_longest_of_those_that_may_answer_stay() -> None:
    router = make_router(
        endpoint_dict("kr", max_model_len=1024),
        endpoint_dict("us", max_model_len=9216, jurisdiction="US"),
    )

    decision = router.decide(make_request("word " * 3000, jurisdictions=("KR",)), now=0.0)

    assert decision.destination == "kr"


@pytest.mark.parametrize(
    ("endpoints", "tenant", "status", "rule"),
    [
        pytest.param([], {}, 503, "no-endpoints", id="empty-pool"),
        pytest.param([endpoint_dict("p", role="prefill")], {}, 503, "role", id="prefill-only"),
        pytest.param([endpoint_dict("a", state="draining")], {}, 503, "state", id="draining"),
        pytest.param(
            [endpoint_dict("a")], {"jurisdictions": ["DE"]}, 403, "jurisdiction", id="elsewhere"
        ),
        pytest.param(
            [endpoint_dict("a")], {"jurisdictions": []}, 403, "jurisdiction", id="nowhere"
        ),
        pytest.param([endpoint_dict("a")], {"operators": ["X"]}, 403, "operator", id="operator"),
        pytest.param(
            [endpoint_dict("a", state="draining"), endpoint_dict("b", jurisdiction="US")],
            {"jurisdictions": ["KR"]},
            503,
            "state",
            id="an-allowed-one-that-drains-is-lack-of-capacity",
        ),
    ],
)
@pytest.mark.lesson("T06")
def test_the_rule_that_left_nobody_decides_the_status(
    endpoints: list[dict[str, object]], tenant: dict[str, object], status: int, rule: str
) -> None:
    router = make_router(*endpoints, tenants=[{"tenant": "tenant-a"} | tenant])

    refusal = router.decide(make_request(), now=0.0).refusal

    assert refusal is not None
    assert (refusal.status, refusal.rule) == (status, rule)


@pytest.mark.lesson("T02")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_test_may_force_and_avoid_endpoints(policy: str) -> None:
    router = make_router(*(endpoint_dict(name) for name in "abcd"))

    forced = [
        router.decide(make_request(f"{turn}", forced=("b",)), now=0.0, policy=policy)
        for turn in range(10)
    ]
    avoided = {
        router.decide(
            make_request(f"{turn}", avoided=("a", "b")), now=0.0, policy=policy
        ).destination
        for turn in range(40)
    }

    assert {(decision.destination, decision.fallbacks) for decision in forced} == {("b", ())}
    assert forced[0].rejected == {"a": "forced", "c": "forced", "d": "forced"}
    assert avoided == {"c", "d"}


@pytest.mark.lesson("T02")
@pytest.mark.parametrize(
    ("wish", "status", "rule"),
    [
        pytest.param({"forced": ("us",)}, 503, "forced", id="forced-out-of-the-jurisdiction"),
        pytest.param({"forced": ("nobody",)}, 503, "forced", id="forced-and-unknown"),
        pytest.param({"forced": ("drained",)}, 503, "forced", id="forced-and-draining"),
        pytest.param({"avoided": ("kr",)}, 503, "avoided", id="all-avoided"),
    ],
)
def test_a_tests_wish_never_overrules_a_hard_filter(
    wish: dict[str, tuple[str, ...]], status: int, rule: str
) -> None:
    router = make_router(
        endpoint_dict("kr"),
        endpoint_dict("us", jurisdiction="US"),
        endpoint_dict("drained", state="draining"),
        tenants=[{"tenant": "tenant-a", "jurisdictions": ["KR"]}],
    )

    refusal = router.decide(make_request(**wish), now=0.0).refusal

    assert refusal is not None
    assert (refusal.status, refusal.rule) == (status, rule)


def test_forcing_a_pair_forces_both_ends_and_one_end_leaves_the_other_open() -> None:
    router = make_router(
        *(endpoint_dict(name, role="prefill") for name in ("p1", "p2")),
        *(endpoint_dict(name, role="decode") for name in ("d1", "d2")),
    )
    crowd(router, 60)

    def decide(*names: str) -> tuple[str | None, str | None]:
        decision = router.decide(make_request("word " * 6000, forced=names), now=1.0)
        return decision.destination, decision.prefill

    assert decide("p2", "d1") == ("d1", "p2")
    assert decide("d2")[0] == "d2"
    assert decide("d2")[1] in ("p1", "p2")
    assert decide("p1")[1] == "p1"
    assert decide("p1")[0] in ("d1", "d2")


@pytest.mark.lesson("N01")
def test_masks_of_many_combinations_are_bounded() -> None:
    router = make_router(endpoint_dict("a"))

    for number in range(600):
        router.decide(make_request("x", jurisdictions=("KR", f"place-{number}")), now=0.0)

    assert len(router._known.rules._base) <= 256


@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_outside_the_gateways_subset_takes_part(policy: str) -> None:
    router = make_router(
        *(endpoint_dict(name, role="prefill") for name in ("p1", "p2")),
        *(endpoint_dict(name, role="decode") for name in ("d1", "d2", "d3")),
    )
    crowd(router, 60)
    subset = frozenset({"p2", "d1", "d3", "gone"})

    decisions = [
        router.decide(
            make_request("word " * 6000, id=f"{n}", subset=subset), now=1.0, policy=policy
        )
        for n in range(10)
    ]

    for decision in decisions:
        ends = {decision.destination, decision.prefill, *decision.fallbacks} - {None}
        assert ends <= subset
        assert decision.rejected["d2"] == "subset"


def test_a_subset_without_an_endpoint_of_the_pool_leaves_nobody() -> None:
    router = make_router(endpoint_dict("a"))

    refusal = router.decide(make_request(subset=frozenset({"gone"})), now=0.0).refusal

    assert refusal is not None
    assert (refusal.status, refusal.rule) == (503, "subset")
    assert refusal.dropped_reason == "rejected-no-endpoints"
