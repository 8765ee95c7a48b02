"""What a router keeps, learns and forgets."""

from typing import Any

import pytest

from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import (
    crowd,
    endpoint_dict,
    make_document,
    make_request,
    make_router,
    serve,
)

LONG = "word " * 5000


def state_of(router: PoolRouter, name: str, *, now: float = 0.0) -> dict[str, Any]:
    """One endpoint's part of the snapshot."""
    endpoints = router.snapshot(now=now)["endpoints"]
    return next(endpoint for endpoint in endpoints if endpoint["id"] == name)


def test_an_unchanged_instance_keeps_its_prefixes_when_a_document_is_applied() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    home = serve(router, make_request(LONG), now=0.0)

    router.apply(
        make_document(endpoint_dict("c"), endpoint_dict("b"), endpoint_dict("a"), version=2),
        now=1.0,
    )

    decision = router.decide(make_request(LONG), now=2.0)
    assert decision.destination == home
    assert decision.predicted.hit_tokens > 0
    assert decision.document_version == 2


def test_a_restarted_instance_starts_with_an_empty_cache() -> None:
    router = make_router(endpoint_dict("a"))
    serve(router, make_request(LONG), now=0.0)

    router.apply(make_document(endpoint_dict("a", instance="2"), version=2), now=1.0)

    assert router.decide(make_request(LONG), now=2.0).predicted.hit_tokens == 0
    assert state_of(router, "a")["indexed_blocks"] == 0


def test_the_first_document_bounds_the_index_over_all_endpoints_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("routing.producers.prefix_index.MAX_ENTRIES", 20)
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))

    home = serve(router, make_request(LONG), now=0.0)

    assert state_of(router, home)["indexed_blocks"] == 10


def test_another_chunk_size_forgets_all_prefixes() -> None:
    router = make_router(endpoint_dict("a"))
    serve(router, make_request(LONG), now=0.0)

    router.apply(
        make_document(endpoint_dict("a"), version=2, prompt_identity={"chunk_bytes": 512}), now=1.0
    )

    assert state_of(router, "a")["indexed_blocks"] == 0


def test_the_engines_own_cache_size_goes_before_the_documents() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    router.observe("a", EngineSignals(kv_capacity_tokens=50_000), now=0.0)

    endpoints = [endpoint_dict(name, kv_capacity_tokens=90_000) for name in "ab"]
    router.apply(make_document(*endpoints, version=2), now=1.0)

    assert state_of(router, "a")["kv_capacity_tokens"] == 50_000
    assert state_of(router, "b")["kv_capacity_tokens"] == 90_000


def test_a_small_cache_holds_few_prompts() -> None:
    router = make_router(endpoint_dict("a", kv_capacity_tokens=8_000))

    for turn in range(5):
        serve(router, make_request(f"{turn} {LONG}"), now=float(turn))

    # 8,000 tokens of 4 bytes are 125 blocks of 256 bytes.
    assert state_of(router, "a")["indexed_blocks"] == 125


def test_reset_forgets_prefixes_speeds_and_lengths_but_no_lease() -> None:
    router = make_router(endpoint_dict("a"))
    for turn in range(5):
        serve(router, make_request(f"{turn} {LONG}"), now=float(turn))
    crowd(router, 2)

    router.reset_knowledge(now=10.0)

    state = state_of(router, "a")
    assert state["indexed_blocks"] == 0
    assert state["speeds"]["source"] == "prior"
    assert router.bytes_per_token("granite") == 4.0
    assert router.leases_open == 2


def test_work_that_others_sent_counts_against_an_endpoint() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    for now in (0.0, 0.5):
        router.observe("a", EngineSignals(running=30, waiting=10), now=now)
        router.observe("b", EngineSignals(running=0, waiting=0), now=now)

    chosen = {
        router.decide(make_request(f"{turn} {LONG}"), now=0.6).destination for turn in range(10)
    }

    assert chosen == {"b"}
    assert state_of(router, "a")["others"] == 40


def test_old_readings_become_unknown_not_zero() -> None:
    router = make_router(endpoint_dict("a"))
    router.observe("a", EngineSignals(running=3, waiting=1, kv_usage=0.5), now=0.0)

    router.decide(make_request(), now=60.0)

    state = state_of(router, "a", now=60.0)
    assert (state["running"], state["waiting"], state["kv_usage"]) == (None, None, None)
    assert state["signal_age_seconds"] == 60.0


@pytest.mark.parametrize(
    ("kind", "times"), [("connect", 1), ("status", 3), ("timeout", 2), ("stall", 3)]
)
def test_a_failing_endpoint_is_left_out_and_probed_by_one_request(kind: str, times: int) -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request()

    for _ in range(times - 1):
        router.failed("a", kind, now=0.0)
    before = router.decide(request, now=0.0)
    router.failed("a", kind, now=0.0)
    during = router.decide(request, now=0.5)
    probe = router.decide(request, now=1.5)
    lease = router.begin(request, probe, now=1.5)
    second = router.decide(request, now=1.6)
    router.end(lease, now=2.0, outcome="ok", prompt_tokens=100, completion_tokens=10)
    after = router.decide(request, now=2.0)

    assert before.destination == "a"
    assert during.refusal is not None
    assert during.refusal.retry_after_seconds == 1.0
    assert during.rejected == {"a": "breaker"}
    assert probe.destination == "a"
    assert second.refusal is not None
    assert after.destination == "a"


def test_a_failed_transfer_keeps_the_pair_apart_and_both_ends_in_use() -> None:
    router = make_router(
        endpoint_dict("p1", role="prefill"),
        endpoint_dict("p2", role="prefill"),
        endpoint_dict("d1", role="decode"),
        endpoint_dict("d2", role="decode"),
    )
    for _ in range(2):
        router.failed("d1", "kv_transfer", now=0.0, prefill_id="p1")

    pairs = {
        (decision.destination, decision.prefill)
        for decision in (
            router.decide(make_request(LONG), now=0.5, policy="random") for _ in range(100)
        )
    }

    assert pairs == {("d1", "p2"), ("d2", "p1"), ("d2", "p2")}


def test_failures_of_removed_endpoints_are_ignored() -> None:
    router = make_router(endpoint_dict("a"))

    router.failed("gone", "connect", now=0.0)
    router.failed("a", "kv_transfer", now=0.0, prefill_id="gone")
    router.observe("gone", EngineSignals(running=1), now=0.0)

    assert router.decide(make_request(), now=0.0).destination == "a"
