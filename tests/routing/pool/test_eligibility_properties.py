"""Whatever the pool and the request are, nothing outside the allowed set takes part."""

from typing import Any, get_args

import hypothesis.strategies as st
from hypothesis import given, settings

from routing.core.decision import Decision
from routing.core.document import PolicyName
from tests.routing.pool.builders import CONTRACT, endpoint_dict, make_request, make_router

PLACES, OPERATORS = ["KR", "US", None], ["X", "Y", None]
ENDPOINTS = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["prefill", "decode", "both"]),
            "jurisdiction": st.sampled_from(PLACES),
            "operator": st.sampled_from(OPERATORS),
            "state": st.sampled_from(["ready", "ready", "ready", "draining"]),
            "capabilities": st.sampled_from([[], ["fp8"], ["fp8", "big"]]),
            "adapters": st.sampled_from([[], ["granite-legal"], ["other"]]),
            "engine_version": st.sampled_from(["0.32", "0.33"]),
        }
    ),
    max_size=8,
)
MODELS = [
    {"name": "granite", "max_model_len": 9216},
    {"name": "granite-big", "max_model_len": 9216, "requires": ["big"]},
    {"name": "granite-legal", "max_model_len": 9216, "adapter_of": "granite"},
]


def is_allowed(
    endpoint: dict[str, Any], model: str, places: list[str] | None, operators: list[str] | None
) -> bool:
    """The rules read plainly, one endpoint at a time."""
    return (
        endpoint["state"] == "ready"
        and (places is None or endpoint["jurisdiction"] in places)
        and (operators is None or endpoint["operator"] in operators)
        and (model != "granite-big" or "big" in endpoint["capabilities"])
        and (
            model != "granite-legal"
            or not endpoint["adapters"]
            or "granite-legal" in endpoint["adapters"]
        )
    )


@settings(max_examples=150, deadline=None)
@given(
    fleet=ENDPOINTS,
    model=st.sampled_from([model["name"] for model in MODELS]),
    places=st.sampled_from([None, ["KR"], ["KR", "US"], ["DE"]]),
    operators=st.sampled_from([None, ["X"], ["X", "Y"]]),
    policy=st.sampled_from(get_args(PolicyName)),
    prompt=st.sampled_from([10, 6000]),
    wish=st.sampled_from(["", "forced", "avoided", "subset"]),
)
def test_no_policy_pair_fallback_or_retry_leaves_the_allowed_set(
    fleet: list[dict[str, Any]],
    model: str,
    places: list[str] | None,
    operators: list[str] | None,
    policy: str,
    prompt: int,
    wish: str,
) -> None:
    endpoints = {}
    for number, fields in enumerate(fleet):
        version = fields.pop("engine_version")
        contract = CONTRACT | {"engine_version": version}
        endpoints[f"e{number}"] = endpoint_dict(f"e{number}", kv_contract=contract, **fields)
    tenant = {"tenant": "tenant-a", "jurisdictions": places, "operators": operators}
    router = make_router(*endpoints.values(), models=MODELS, tenants=[tenant])
    allowed = {
        name for name, fields in endpoints.items() if is_allowed(fields, model, places, operators)
    }
    wished = tuple(endpoints)[:2] or ("e0",)
    wishes = {wish: frozenset(wished) if wish == "subset" else wished} if wish else {}

    excluded: frozenset[str] = frozenset()
    for attempt in range(4):
        request = make_request("word " * prompt, model=model, id=f"r{attempt}", **wishes)
        decision = router.decide(request, now=float(attempt), policy=policy, exclude=excluded)
        if decision.refusal is not None:
            assert decision.refusal.rule
            break
        ends = {decision.destination, *decision.fallbacks} | (
            set() if decision.prefill is None else {decision.prefill}
        )
        assert ends <= allowed - excluded
        assert all(
            endpoints[str(end)]["role"] != "prefill"
            for end in (decision.destination, *decision.fallbacks)
        )
        _check_pair(endpoints, decision, places)
        assert wish != "avoided" or not ends & set(wished)
        assert wish != "subset" or ends <= set(wished)
        excluded |= {str(decision.destination)}
    else:
        return
    answering = {name for name in allowed if endpoints[name]["role"] != "prefill"}
    refusal = decision.refusal
    assert refusal is not None
    if not wish and not excluded:
        assert not answering
    assert refusal.status in (403, 503)
    if refusal.status == 403:
        assert not answering


def _check_pair(
    endpoints: dict[str, dict[str, Any]], decision: Decision, places: list[str] | None
) -> None:
    if decision.prefill is None:
        return
    prefill, decode = endpoints[decision.prefill], endpoints[str(decision.destination)]
    assert (prefill["role"], decode["role"]) == ("prefill", "decode")
    assert prefill["kv_contract"] == decode["kv_contract"]
    if places is not None:
        assert prefill["jurisdiction"] == decode["jurisdiction"]
