"""Predicted against real cached tokens."""

import pytest

from routing.core.signals import EngineSignals
from routing.producers.hit_audit import WINDOW_REQUESTS, HitAudit


def counters(queries: float, hits: float) -> EngineSignals:
    return EngineSignals(prefix_queries_total=queries, prefix_hits_total=hits)


@pytest.mark.lesson("X13")
def test_rates_follow_the_last_requests() -> None:
    audit = HitAudit()
    assert audit.predicted_rate is None
    for _ in range(300):
        audit.observe(prompt_tokens=1000, predicted_tokens=800, cached_tokens=800)
    for _ in range(300):
        audit.observe(prompt_tokens=1000, predicted_tokens=800, cached_tokens=0)

    assert audit.predicted_rate == pytest.approx(0.8)
    assert audit.real_rate == pytest.approx(0.0, abs=0.01)
    assert audit.is_unconfirmed


def test_a_window_of_counters_speaks_for_prompts_without_a_report() -> None:
    audit = HitAudit()
    assert audit.read(counters(1000, 100)) is None
    for _ in range(WINDOW_REQUESTS):
        audit.observe(prompt_tokens=100, predicted_tokens=80, cached_tokens=None)

    window = audit.read(counters(1000 + 100 * WINDOW_REQUESTS, 100 + 20 * WINDOW_REQUESTS))

    assert window == (80.0 * WINDOW_REQUESTS, 20.0 * WINDOW_REQUESTS)
    assert audit.real_rate == pytest.approx(0.2)


@pytest.mark.parametrize(
    "signals",
    [
        pytest.param(counters(50_000, 0), id="others-prompts"),
        pytest.param(counters(1010, 0), id="prompts-still-running"),
        pytest.param(counters(5, 0), id="counters-began-again"),
        pytest.param(EngineSignals(), id="no-counters"),
    ],
)
def test_a_window_that_is_not_ours_says_nothing(signals: EngineSignals) -> None:
    audit = HitAudit()
    audit.read(counters(1000, 0))
    for _ in range(WINDOW_REQUESTS):
        audit.observe(prompt_tokens=100, predicted_tokens=80, cached_tokens=None)

    assert audit.read(signals) is None
    assert audit.requests == 0


def test_hits_that_nobody_predicted_are_told_from_good_luck() -> None:
    audit, lucky = HitAudit(), HitAudit()
    for _ in range(WINDOW_REQUESTS):
        audit.observe(prompt_tokens=100, predicted_tokens=0, cached_tokens=90)
        lucky.observe(prompt_tokens=100, predicted_tokens=10, cached_tokens=90)

    assert audit.is_unpredicted
    assert not lucky.is_unpredicted
    assert not lucky.is_unconfirmed
