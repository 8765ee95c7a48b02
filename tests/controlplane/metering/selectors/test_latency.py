"""Latency and hit rate are merged over hours and nodes, never averaged."""

from datetime import timedelta

import pytest

from controlplane.metering import selectors
from controlplane.metering.digest import digest_of
from controlplane.metering.models import UsageHour
from tests.controlplane.metering.rows import HOUR, make_usage_hour

pytestmark = pytest.mark.django_db
END = HOUR + timedelta(hours=1)


def test_quantiles_cover_all_nodes_of_a_pool() -> None:
    make_usage_hour(node="a", ttft_digest=digest_of([0.1] * 90))
    make_usage_hour(node="b", ttft_digest=digest_of([5.0] * 10), cache_read=0)
    make_usage_hour(pool="other", ttft_digest=digest_of([9.0]))

    figures = selectors.latency_by_pool(UsageHour.objects.all(), start=HOUR, end=END)

    assert list(figures) == ["granite", "other"]
    granite = figures["granite"]
    assert granite.answers == 100
    assert granite.ttft_p50_seconds == pytest.approx(0.1, rel=0.02)
    assert granite.ttft_p95_seconds == pytest.approx(5.0, rel=0.02)
    assert granite.tpot_p95_seconds is None
    assert granite.prefix_hit_rate == pytest.approx(600 / 1400)


def test_hit_rate_without_prompts_is_no_data() -> None:
    assert selectors.prefix_hit_rate(UsageHour.objects.all(), start=HOUR, end=END) is None
