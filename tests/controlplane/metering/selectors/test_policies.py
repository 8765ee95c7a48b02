"""Policies are compared on what their clients saw in one window."""

from datetime import UTC, datetime

import pytest

from controlplane.metering import selectors, services
from tests.controlplane.metering.rows import AT, make_event, make_segment

pytestmark = pytest.mark.django_db


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(AT + seconds, UTC)


def test_each_policy_has_its_figures() -> None:
    events = [
        make_event(1, policy="random", received_at=AT, ended_at=AT + 2, cached_tokens=0),
        make_event(2, policy="random", received_at=AT, ended_at=AT + 5, ttft_seconds=0.8),
        make_event(3, policy="random", outcome="error", status=502, completion_tokens=0),
        make_event(4, policy="consort", received_at=AT + 10, ended_at=AT + 20),
        make_event(5, policy="consort", project="other", ended_at=AT + 20),
        make_event(6, policy="consort", received_at=AT + 90, ended_at=AT + 99),
    ]
    services.ingest_segment(make_segment(events))

    figures = selectors.policy_figures(
        pool="granite", project="chat", start=moment(0), end=moment(60)
    )

    consort, random = figures
    assert (consort.policy, random.policy) == ("consort", "random")
    assert (random.requests_ok, random.requests_failed) == (2, 1)
    assert random.ttft_p50_seconds == pytest.approx(0.2, rel=0.02)
    assert random.ttft_p90_seconds == pytest.approx(0.8, rel=0.02)
    assert random.output_tokens_per_second == pytest.approx(100 / 5)
    assert random.prefix_hit_rate == pytest.approx(1200 / 3000)
    assert consort.output_tokens_per_second == pytest.approx(50 / 10)
    assert consort.seconds == 10


def test_no_traffic_is_no_figure() -> None:
    assert selectors.policy_figures(pool="granite", start=moment(0), end=moment(60)) == []
