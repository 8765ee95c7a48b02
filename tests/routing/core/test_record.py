"""Decision records: complete, JSON-able, honest about what was unknown, free of prompt text."""

import json

import pytest

from routing.core.record import MOST_CANDIDATES, record_of
from routing.core.signals import EngineSignals
from tests.routing.pool.builders import crowd, endpoint_dict, make_request, make_router

POLICIES = ["random", "round-robin", "least-requests", "consort"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_record_is_json_with_every_candidate_and_no_prompt(policy: str) -> None:
    router = make_router(
        endpoint_dict("p", role="prefill"),
        endpoint_dict("d", role="decode"),
        endpoint_dict("out", state="draining"),
    )
    router.observe("d", EngineSignals(running=1, waiting=0), now=0.5)

    record = record_of(router.decide(make_request("secret " * 3000), now=1.0, policy=policy))

    text = json.dumps(record, allow_nan=False)
    assert "secret" not in text
    (candidate,) = record["candidates"]
    assert candidate["endpoint"] == "d"
    assert candidate["signal_age_seconds"] == 0.5
    parts = [value for name, value in candidate["terms"].items() if name not in ("total", "tpot")]
    assert sum(parts) == pytest.approx(candidate["terms"]["total"], abs=1e-5)
    assert record["rejected"] == [{"endpoint": "out", "rule": "state"}]


def test_a_record_of_a_refusal_is_json_too() -> None:
    record = record_of(make_router().decide(make_request(), now=1.0))

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


@pytest.mark.lesson("T06")
def test_a_record_names_the_rule_that_decided_and_the_key_that_asked() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b", speed_class="slow"))
    lone = make_router(endpoint_dict("a"))
    request = make_request()

    rules = {
        record_of(decision)["decided_by"]
        for decision in (
            router.decide(request, now=0.0),
            router.decide(request, now=0.0, policy="random"),
            lone.decide(request, now=0.0),
            make_router().decide(request, now=0.0),
        )
    }

    assert rules == {"price", "random", "only-candidate", "no-capacity"}
    assert record_of(router.decide(request, now=0.0))["request"]["key_id"] == "key-a"


def test_a_record_of_a_large_pool_lists_the_cheapest_and_counts_the_others() -> None:
    names = [f"e{number}" for number in range(150)]
    out = [f"out{number}" for number in range(300)]
    router = make_router(
        *(endpoint_dict(name, speed_class="slow") for name in names[:100]),
        *(endpoint_dict(name) for name in names[100:]),
        *(endpoint_dict(name, state="draining") for name in out),
    )

    record = record_of(router.decide(make_request(), now=0.0, keep="always"))

    listed = [row["endpoint"] for row in record["candidates"]]
    totals = [row["terms"]["total"] for row in record["candidates"]]
    assert len(listed) == MOST_CANDIDATES
    assert totals == sorted(totals)
    assert set(names[100:]) <= set(listed)
    assert record["candidate_count"] == 150
    assert record["removed"] == {"state": 300}
    assert len(json.dumps(record)) < 100_000


def test_a_record_shows_sizes_and_keys_of_a_prompt_and_nothing_of_its_text() -> None:
    router = make_router(endpoint_dict("a"))

    facts = record_of(router.decide(make_request("secret " * 3000), now=0.0))["request"]

    assert facts["prompt_tokens"] > 4000
    assert facts["tenant"] == "tenant-a"
    assert facts["prefix"]["blocks"] > 10
    assert len(facts["prefix"]["first"]) == 16


def test_a_record_tells_what_the_other_way_of_computing_the_prompt_would_have_cost() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))

    crowd(router, 40)

    (row,) = record_of(router.decide(make_request("word " * 6000), now=0.0))["candidates"]

    assert (row["prefill"], row["other_way"]["prefill"]) == ("p", None)
    assert row["other_way"]["gain_seconds"] > 0
