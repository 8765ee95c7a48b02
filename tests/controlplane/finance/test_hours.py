"""An hour of a node: its parts sum to its total, and its classes to its parts."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from controlplane.finance.classes import CostKey, Span
from controlplane.finance.depreciation import AssetTerms
from controlplane.finance.hours import HOUR, AcceleratorHour, class_costs, covered, hour_cost
from controlplane.finance.power import Power

START = datetime(2026, 11, 30, 10, tzinfo=UTC)
TERMS = AssetTerms(
    price=Decimal(72_000),
    residual=Decimal(0),
    life_months=72,
    annual_rate=Decimal("0.06"),
    in_service_at=datetime(2026, 1, 1, tzinfo=UTC),
)
DECODE = CostKey("assigned", "granite", "decode")


def test_the_hour_is_covered_from_service_to_now_or_retirement() -> None:
    now = START + timedelta(minutes=30)
    ends = AssetTerms(
        price=Decimal(1),
        residual=Decimal(0),
        life_months=1,
        annual_rate=Decimal(0),
        in_service_at=START + timedelta(minutes=10),
        retired_at=START + timedelta(minutes=20),
    )

    assert covered(TERMS, START, now=now) == (START, now)
    assert covered(TERMS, START, now=now + HOUR) == (START, START + HOUR)
    assert covered(ends, START, now=now) == (ends.in_service_at, ends.retired_at)


def test_unknown_power_is_left_out_of_the_total() -> None:
    cost = hour_cost(
        TERMS,
        start=START,
        end=START + HOUR,
        power=Power(None, "unknown"),
        pue=Decimal("1.3"),
        tariff_per_kwh=Decimal("0.1"),
    )

    assert cost.power is None
    assert cost.total == cost.depreciation + cost.finance
    assert cost.seconds == 3600


@given(
    st.decimals(min_value=0, max_value=10**6, places=10),
    st.lists(st.floats(-30, 90), min_size=1, max_size=8),
)
def test_classes_sum_to_the_total(total: Decimal, minutes: list[float]) -> None:
    whole = [
        AcceleratorHour(
            [Span(DECODE, START + timedelta(minutes=minute), None)], start=START, end=START + HOUR
        )
        for minute in minutes
    ]

    parts = class_costs(whole, total=total)

    assert sum(part.amount for part in parts) == total
    assert sum(part.accelerator_seconds for part in parts) == 3600 * len(minutes)


def test_a_node_without_accelerators_has_no_classes() -> None:
    assert class_costs([], total=Decimal(1)) == []
