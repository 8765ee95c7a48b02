"""Decision records: complete, JSON-able, honest about what was unknown, free of prompt text."""

import json

import pytest

from routing.core.signals import EngineSignals
from routing.pool.router import StaleDecisionError
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router

POLICIES = ["random", "round-robin", "least-requests", "consort"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_record_is_json_with_every_candidate_and_no_prompt(policy: str) -> None:
    router = make_router(
        endpoint_dict("p", role="prefill"),
        endpoint_dict("d", role="decode"),
        endpoint_dict("out", state="draining"),
    )
    router.observe("d", EngineSignals(running=1, waiting=0), now=0.5)

    record = router.decide(make_request("secret " * 3000), now=1.0, policy=policy).record()

    text = json.dumps(record, allow_nan=False)
    assert "secret" not in text
    (candidate,) = record["candidates"]
    assert candidate["endpoint"] == "d"
    assert candidate["signal_age_seconds"] == 0.5
    parts = [value for name, value in candidate["terms"].items() if name not in ("total", "tpot")]
    assert sum(parts) == pytest.approx(candidate["terms"]["total"], abs=1e-5)
    assert record["rejected"] == [{"endpoint": "out", "rule": "state"}]


def test_a_record_of_a_refusal_is_json_too() -> None:
    record = make_router().decide(make_request(), now=1.0).record()

    assert json.loads(json.dumps(record, allow_nan=False))["refusal"]["status"] == 503


def test_what_is_unknown_is_said_to_be_degraded() -> None:
    router = make_router(endpoint_dict("a", kv_capacity_tokens=None))

    blind = router.decide(make_request(), now=1.0)
    router.observe("a", EngineSignals(running=0, waiting=0, kv_capacity_tokens=1000), now=1.0)
    seeing = router.decide(make_request(), now=1.1)

    assert set(blind.degraded) == {
        "no-engine-signals",
        "speed-from-class-prior",
        "kv-capacity-unknown",
    }
    assert seeing.degraded == ("speed-from-class-prior",)


def test_a_decision_about_a_removed_endpoint_cannot_be_begun() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request()
    decision = router.decide(request, now=0.0)
    router.apply(make_document(endpoint_dict("b"), version=2), now=1.0)

    with pytest.raises(StaleDecisionError, match="'a' is not in document version 2"):
        router.begin(request, decision, now=1.0)
