"""Token buckets of tenants."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from routing.core.document import TenantSpec
from routing.producers.tenants import TenantLimits


def limits_of(rate: float | None) -> TenantLimits:
    return TenantLimits((TenantSpec(tenant="t", requests_per_second=rate),), now=0.0)


def test_a_tenant_without_a_rate_is_never_held_back() -> None:
    limits = limits_of(None)

    for _ in range(1000):
        limits.take("t", now=0.0)
    limits.take("unknown", now=0.0)

    assert limits.seconds_until_allowed("t", now=0.0) == 0
    assert limits.seconds_until_allowed("unknown", now=0.0) == 0


def test_a_burst_of_one_second_passes_and_then_the_rate_holds() -> None:
    limits = limits_of(10)

    for _ in range(10):
        assert limits.seconds_until_allowed("t", now=0.0) == 0
        limits.take("t", now=0.0)

    assert limits.seconds_until_allowed("t", now=0.0) == pytest.approx(0.1)
    assert limits.seconds_until_allowed("t", now=0.1) == pytest.approx(0.0, abs=1e-9)


@settings(deadline=None)
@given(
    st.floats(0.1, 50),
    st.lists(st.floats(0, 0.5), max_size=200),
)
def test_never_more_than_the_rate_and_one_burst(rate: float, gaps: list[float]) -> None:
    limits, now, sent = limits_of(rate), 0.0, 0

    for gap in gaps:
        now += gap
        if limits.seconds_until_allowed("t", now=now) <= 0:
            limits.take("t", now=now)
            sent += 1

    assert sent <= max(1.0, rate) + rate * now + 1e-6


def test_another_document_keeps_the_level_of_a_bucket() -> None:
    limits = limits_of(10)
    for _ in range(10):
        limits.take("t", now=0.0)

    limits.apply((TenantSpec(tenant="t", requests_per_second=20),), now=0.0)

    assert limits.seconds_until_allowed("t", now=0.0) > 0
