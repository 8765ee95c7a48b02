"""What each step of a request teaches the router."""

from typing import Any

import pytest

from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import (
    endpoint_dict,
    make_request,
    make_router,
    serve,
)

LONG = "word " * 5000


def state_of(router: PoolRouter, name: str, *, now: float = 0.0) -> dict[str, Any]:
    """One endpoint's part of the snapshot."""
    endpoints = router.snapshot(now=now)["endpoints"]
    return next(endpoint for endpoint in endpoints if endpoint["id"] == name)


def test_another_process_start_in_the_metrics_empties_the_believed_cache() -> None:
    router = make_router(endpoint_dict("a"))
    router.observe("a", EngineSignals(process_start=1000.0), now=0.0)
    serve(router, make_request(LONG), now=0.0)

    router.observe("a", EngineSignals(process_start=1000.0), now=1.0)
    same = router.decide(make_request(LONG), now=1.0).predicted.hit_tokens
    router.observe("a", EngineSignals(process_start=2000.0), now=2.0)
    restarted = router.decide(make_request(LONG), now=2.0).predicted.hit_tokens

    assert same > 0
    assert restarted == 0


def test_lesson_w09_hits_count_in_the_blocks_that_the_engine_reports() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request("word " * 150)
    serve(router, request, now=0.0)

    small = router.decide(request, now=1.0).predicted.hit_tokens
    router.observe("a", EngineSignals(block_size_tokens=128), now=1.0)
    large = router.decide(request, now=1.0).predicted.hit_tokens
    router.observe("a", EngineSignals(block_size_tokens=256), now=1.0)
    none = router.decide(request, now=1.0).predicted.hit_tokens

    # 190 tokens are two chunks of 64 tokens.
    assert (small, large, none) == (128, 128, 0)


def test_trust_falls_when_predicted_hits_do_not_come() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request(LONG)

    for turn in range(20):
        lease = router.begin(request, router.decide(request, now=turn), now=turn)
        router.first_token(lease, now=turn + 0.5)
        router.end(lease, now=turn + 0.9, outcome="ok", prompt_tokens=6000, cached_tokens=0)

    assert state_of(router, "a")["trust"] < 0.2
    assert router.decide(request, now=30.0).predicted.hit_tokens < 0.2 * 6250


def test_trust_stays_when_the_engine_reports_no_cached_tokens() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request(LONG)

    for turn in range(5):
        lease = router.begin(request, router.decide(request, now=turn), now=turn)
        router.first_token(lease, now=turn + 0.5)
        router.end(lease, now=turn + 0.9, outcome="ok", prompt_tokens=6250)

    assert state_of(router, "a")["trust"] == 1.0


def test_the_prefill_end_of_a_pair_is_the_one_that_is_trusted_or_not() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    request = make_request(LONG)

    for turn in range(5):
        decision = router.decide(request, now=turn, policy="random")
        lease = router.begin(request, decision, now=turn)
        router.prefill_done(lease, now=turn + 0.3, prompt_tokens=6250, cached_tokens=0)
        router.first_token(lease, now=turn + 0.5)
        router.end(lease, now=turn + 0.9, outcome="ok", prompt_tokens=6250, cached_tokens=6249)

    assert state_of(router, "p")["trust"] < 0.8
    assert state_of(router, "d")["trust"] == 1.0


def test_an_answer_that_was_not_streamed_clears_the_pairs_failures_too() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    request = make_request(LONG)

    for turn in range(4):
        router.failed("d", "kv_transfer", now=turn, prefill_id="p")
        decision = router.decide(request, now=turn + 0.1, policy="random")
        lease = router.begin(request, decision, now=turn + 0.1)
        router.prefill_done(lease, now=turn + 0.2, prompt_tokens=6250, cached_tokens=0)
        router.end(lease, now=turn + 0.9, outcome="ok", prompt_tokens=6250)

    (pair,) = router.snapshot(now=5.0)["pairs"]
    assert pair["breaker"]["state"] == "closed"


@pytest.mark.parametrize(
    ("kind", "times", "state"), [("connect", 1, "closed"), ("stall", 3, "half-open")]
)
def test_a_first_token_closes_the_breaker_of_what_it_disproves(
    kind: Any, times: int, state: str
) -> None:
    router = make_router(endpoint_dict("a"))
    for _ in range(times):
        router.failed("a", kind, now=0.0)
    request = make_request(LONG)

    lease = router.begin(request, router.decide(request, now=5.0), now=5.0)
    router.first_token(lease, now=5.5)

    assert state_of(router, "a", now=6.0)["breaker"]["state"] == state
    assert (router.decide(request, now=6.0).destination == "a") == (state == "closed")


def test_bytes_per_token_and_output_length_follow_the_engines_counts() -> None:
    router = make_router(endpoint_dict("a"))
    for turn in range(3):
        request = make_request(LONG, max_tokens=1000)
        lease = router.begin(request, router.decide(request, now=turn), now=turn)
        router.first_token(lease, now=turn + 0.5)
        router.end(lease, now=turn + 0.9, outcome="ok", prompt_tokens=5000, completion_tokens=30)

    decision = router.decide(make_request(LONG, max_tokens=1000), now=9.0)

    assert router.bytes_per_token("granite") == pytest.approx(5.0, rel=0.01)
    assert decision.predicted.output_tokens == 30


def test_an_endpoint_slower_than_its_prior_is_found_out() -> None:
    router = make_router(endpoint_dict("a"))

    for turn in range(60):
        request = make_request(f"{turn} {LONG}")
        now = 10.0 * turn
        lease = router.begin(request, router.decide(request, now=now), now=now)
        # 6,250 tokens at 20,000 tokens/s would take 0.31 s, 49 steps of 6.6 ms 0.32 s.
        router.first_token(lease, now=now + 0.95)
        router.end(
            lease,
            now=now + 0.95 + 0.97,
            outcome="ok",
            prompt_tokens=6250,
            cached_tokens=0,
            completion_tokens=50,
        )

    decision = router.decide(make_request(f"other {LONG}"), now=1e4)
    assert decision.predicted.ttft_seconds == pytest.approx(0.95, rel=0.1)
    assert decision.predicted.tpot_seconds == pytest.approx(0.0198, rel=0.15)


def test_a_slow_transfer_is_learned_per_pair() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    stated = router.snapshot(now=0.0)["pairs"][0]["seconds_per_1000_tokens"]

    for turn in range(30):
        request = make_request(f"{turn} {LONG}")
        lease = router.begin(request, router.decide(request, now=turn, policy="random"), now=turn)
        router.prefill_done(lease, now=turn + 0.3, prompt_tokens=6250, cached_tokens=0)
        router.first_token(lease, now=turn + 0.3 + 4 * 6.25 * stated)
        router.end(lease, now=turn + 0.9, outcome="ok", prompt_tokens=6250)

    learned = router.snapshot(now=99.0)["pairs"][0]["learned_seconds_per_1000_tokens"]
    assert learned == pytest.approx(4 * stated, rel=0.1)
