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
