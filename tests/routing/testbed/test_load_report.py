"""Figures of a run: definitions of the published benchmarks, and unknown is not zero."""

from typing import Any

import pytest

from routing.testbed.load_report import Outcome, Spread, Targets, spread, summarize


def outcome(index: int = 0, **values: Any) -> Outcome:
    """A request that went well: first token after 1 s, 10 more in 2 s."""
    defaults: dict[str, Any] = {
        "sent_at": 10.0,
        "first_at": 11.0,
        "last_at": 13.0,
        "ended_at": 13.0,
        "prompt_tokens": 100,
        "completion_tokens": 11,
        "cached_tokens": 50,
    }
    return Outcome(index=index, **(defaults | values))


def test_throughput_is_tokens_over_first_send_to_last_completion() -> None:
    outcomes = [outcome(), outcome(sent_at=12.0, first_at=14.0, last_at=20.0, ended_at=20.0)]

    report = summarize(outcomes, max_send_lag_seconds=0.0)

    assert report.duration_seconds == 10.0
    assert report.output_tokens_per_second == pytest.approx(2.2)
    assert report.prefix_hit_rate == pytest.approx(0.5)


def test_failures_are_counted_beside_the_latencies() -> None:
    late = outcome(failure="timeout", ended_at=None)
    refused = [outcome(failure="http-429", first_at=10.1) for _ in range(2)]

    report = summarize([outcome(), late, *refused], max_send_lag_seconds=0.0)

    assert (report.sent, report.ok, report.failed) == (4, 1, 3)
    assert report.failures_by_reason == {"http-429": 2, "timeout": 1}
    assert report.ttft_seconds == Spread(1.0, 1.0, 1.0, 1.0)
    assert report.tpot_seconds.p50 == pytest.approx(0.2)


def test_what_nobody_reported_is_none() -> None:
    report = summarize([outcome(cached_tokens=None)], max_send_lag_seconds=0.0)

    assert report.cached_tokens is None
    assert report.prefix_hit_rate is None


def test_a_run_without_success_has_no_figures() -> None:
    report = summarize([outcome(failure="connection")], max_send_lag_seconds=0.0)

    assert report.output_tokens_per_second is None
    assert report.ttft_seconds == Spread(None, None, None, None)


def test_percentiles_are_nearest_ranks() -> None:
    assert spread(float(n) for n in range(1, 101)) == Spread(50.5, 50.0, 90.0, 99.0)


def _answered(*, ttft: float, tpot: float, tokens: int = 11) -> Outcome:
    return Outcome(
        index=0,
        sent_at=0.0,
        first_at=ttft,
        last_at=ttft + tpot * (tokens - 1),
        ended_at=ttft + tpot * (tokens - 1),
        completion_tokens=tokens,
    )


def test_goodput_counts_requests_that_met_every_target() -> None:
    outcomes = [
        _answered(ttft=1.0, tpot=0.05),
        _answered(ttft=4.0, tpot=0.05),
        _answered(ttft=1.0, tpot=0.10),
        _answered(ttft=1.0, tpot=0.0, tokens=1),
    ]

    report = summarize(outcomes, max_send_lag_seconds=0.0, targets=Targets(3.0, 0.08))

    assert report.within_slo == 2
    assert report.goodput_per_second == pytest.approx(2 / 4.5)


def test_without_targets_there_is_no_goodput() -> None:
    report = summarize([_answered(ttft=1.0, tpot=0.05)], max_send_lag_seconds=0.0)

    assert report.within_slo is None
    assert report.goodput_per_second is None
