"""Depreciation is exact over the life, and equals the worked example to the digit."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.finance.depreciation import (
    AssetTerms,
    book_value,
    depreciation,
    finance_cost,
    hours_in_month,
    month_later,
)

# Worked example of the design: capex 240,000, install 12,000, spares 8,000, residual 20,000 USD,
# 48 months, in service 2026-01-15 12:00 UTC.
EXAMPLE = AssetTerms(
    price=Decimal(260_000),
    residual=Decimal(20_000),
    life_months=48,
    annual_rate=Decimal("0.06"),
    in_service_at=datetime(2026, 1, 15, 12, tzinfo=UTC),
)
FIRST = datetime(2020, 1, 1, tzinfo=UTC)


def month(year: int, number: int) -> tuple[datetime, datetime]:
    start = datetime(year, number, 1, tzinfo=UTC)
    return start, (start + timedelta(days=32)).replace(day=1)


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        pytest.param(month(2026, 1), "2661.2903225806", id="first-month-by-its-396-hours"),
        pytest.param(month(2026, 2), "5000.0000000000", id="full-month"),
        pytest.param(month(2030, 1), "2338.7096774194", id="last-month-takes-what-is-left"),
        pytest.param(month(2030, 2), "0.0000000000", id="nothing-after-the-life"),
        pytest.param(month(2025, 12), "0.0000000000", id="nothing-before-service"),
    ],
)
def test_worked_example_by_month(period: tuple[datetime, datetime], expected: str) -> None:
    amount = depreciation(EXAMPLE, *period)

    assert amount == Decimal(expected)


def test_worked_example_by_hour() -> None:
    start = datetime(2026, 2, 10, 7, tzinfo=UTC)

    amount = depreciation(EXAMPLE, start, start + timedelta(hours=1))

    assert abs(amount - Decimal("7.4404761905")) <= Decimal("1e-10")


def test_worked_example_over_the_life_is_exactly_the_base() -> None:
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2030, 3, 1, tzinfo=UTC)
    hours = int((end - start).total_seconds()) // 3600
    # Of 13 hours each, so that cuts fall on every hour of a day.
    cuts = [start + timedelta(hours=h) for h in (*range(0, hours, 13), hours)]

    total = sum(depreciation(EXAMPLE, since, until) for since, until in pairwise(cuts))

    assert total == Decimal(240_000)


@given(
    price=st.decimals(min_value=0, max_value=10**9, places=2),
    residual_share=st.integers(0, 100),
    life=st.integers(1, 120),
    in_service=st.integers(0, 3650 * 24).map(lambda hours: FIRST + timedelta(hours=hours)),
    cuts=st.lists(st.integers(0, 130 * 31 * 24), max_size=8),
)
def test_any_cut_of_the_life_sums_to_the_base(
    price: Decimal, residual_share: int, life: int, in_service: datetime, cuts: list[int]
) -> None:
    terms = AssetTerms(
        price=price,
        residual=(price * residual_share / 100).quantize(Decimal("0.01")),
        life_months=life,
        annual_rate=Decimal(0),
        in_service_at=in_service,
    )
    moments = [in_service - timedelta(days=1)]
    moments += sorted(in_service + timedelta(hours=cut) for cut in cuts)
    moments += [max(terms.end, moments[-1]) + timedelta(hours=1)]

    parts = [depreciation(terms, start, end) for start, end in pairwise(moments)]

    assert sum(parts) == terms.base
    assert all(part >= 0 for part in parts)


def test_retired_asset_stops_and_keeps_its_book_value() -> None:
    retired = datetime(2027, 1, 15, 12, tzinfo=UTC)
    terms = AssetTerms(
        price=EXAMPLE.price,
        residual=EXAMPLE.residual,
        life_months=48,
        annual_rate=EXAMPLE.annual_rate,
        in_service_at=EXAMPLE.in_service_at,
        retired_at=retired,
    )

    assert depreciation(terms, retired, retired + timedelta(days=400)) == 0
    assert book_value(terms, retired + timedelta(days=400)) == Decimal(200_000)


def test_a_later_version_depreciates_what_it_took_over_until_the_longer_life_ends() -> None:
    start = datetime(2027, 1, 1, tzinfo=UTC)
    opening = book_value(EXAMPLE, start)
    revised = AssetTerms(
        price=opening,
        residual=Decimal(10_000),
        life_months=72,
        annual_rate=Decimal("0.06"),
        in_service_at=EXAMPLE.in_service_at,
        starts_at=start,
    )

    total = depreciation(revised, start, datetime(2033, 1, 1, tzinfo=UTC))

    assert depreciation(revised, EXAMPLE.in_service_at, start) == 0
    assert total == opening - 10_000


def test_cost_of_capital_follows_the_mean_book_value_of_the_month() -> None:
    start = datetime(2026, 2, 1, tzinfo=UTC)
    opening = book_value(EXAMPLE, start)

    month_cost = finance_cost(EXAMPLE, start, datetime(2026, 3, 1, tzinfo=UTC))

    assert month_cost == ((opening + opening - 5_000) / 2 * Decimal("0.005")).quantize(
        Decimal("1e-10")
    )
    assert finance_cost(EXAMPLE, start - timedelta(days=60), start - timedelta(days=40)) == 0


@pytest.mark.parametrize(
    ("moment", "months", "expected"),
    [
        (datetime(2026, 1, 15, 12, tzinfo=UTC), 48, datetime(2030, 1, 15, 12, tzinfo=UTC)),
        (datetime(2026, 1, 31, tzinfo=UTC), 1, datetime(2026, 3, 1, tzinfo=UTC)),
        (datetime(2026, 12, 1, tzinfo=UTC), 1, datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_month_later(moment: datetime, months: int, expected: datetime) -> None:
    assert month_later(moment, months) == expected


def test_months_have_672_to_744_hours() -> None:
    hours = {hours_in_month(datetime(2026, m, 15, tzinfo=UTC)) for m in range(1, 13)}

    assert hours == {672, 720, 744}
