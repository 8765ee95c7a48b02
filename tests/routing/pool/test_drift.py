"""Sentences about caches that are not as the router believes."""

from typing import Any

import pytest

from routing.core.compact_map import CompactMap
from routing.core.publishers import Publisher
from routing.pool.drift import Seen, doubt, message
from routing.producers.event_health import EventHealth
from routing.producers.hit_audit import WINDOW_REQUESTS, HitAudit


def audit_of(*, predicted: int, cached: int, requests: int = WINDOW_REQUESTS) -> HitAudit:
    audit = HitAudit()
    for _ in range(requests):
        audit.observe(prompt_tokens=1000, predicted_tokens=predicted, cached_tokens=cached)
    return audit


def seen(audit: HitAudit, **more: Any) -> Seen:
    values: dict[str, Any] = {
        "audit": audit,
        "health": EventHealth(can_replay=False, state="live"),
        "publisher": Publisher(0, CompactMap(), engine_block_tokens=16),
        "router_block_tokens": 16,
        "stated_block_tokens": 16,
    }
    return Seen(**(values | more))


@pytest.mark.parametrize(
    ("predicted", "cached", "requests"),
    [
        pytest.param(800, 800, WINDOW_REQUESTS, id="right"),
        pytest.param(0, 0, WINDOW_REQUESTS, id="nothing-cached"),
        pytest.param(800, 0, WINDOW_REQUESTS - 1, id="too-few"),
        pytest.param(500, 900, WINDOW_REQUESTS, id="better-than-predicted"),
    ],
)
def test_nothing_is_said_where_nothing_is_wrong(predicted: int, cached: int, requests: int) -> None:
    audit = audit_of(predicted=predicted, cached=cached, requests=requests)

    assert message("a", seen(audit)) is None


@pytest.mark.lesson("X07")
def test_hits_without_any_prediction_point_to_other_tokens() -> None:
    """Zero overlap on all traffic, although the index is full of the engine's blocks."""
    text = message("a", seen(audit_of(predicted=0, cached=800)))

    assert text is not None
    assert "chat template" in text
    assert "0% of prompt tokens were predicted to be cached, 80% were" in text


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        pytest.param(
            {"publisher": Publisher(0, CompactMap(), engine_block_tokens=128)},
            "128 tokens and not 16",
            id="block-size",
        ),
        pytest.param({"health": None}, "publishes no events", id="no-events"),
        pytest.param(
            {"health": EventHealth(can_replay=False, state="doubtful")}, "were lost", id="lost"
        ),
        pytest.param({}, "prefix cache", id="unknown"),
    ],
)
@pytest.mark.lesson("X13")
def test_predictions_that_do_not_come_true_have_a_likely_cause(
    changes: dict[str, Any], cause: str
) -> None:
    text = message("a", seen(audit_of(predicted=800, cached=0), **changes))

    assert text is not None
    assert cause in text


def test_a_doubt_says_why_and_how_much_is_left() -> None:
    health = EventHealth(can_replay=False, state="live")
    health.trouble("undecodable", now=10.0)

    assert "(undecodable 1), so its cache counts for 25%" in doubt("a", health, now=70.0)
