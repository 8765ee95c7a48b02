"""Depreciation and cost of capital of one asset, exact to the month (straight line).

base          = capex + install + spares - residual
month_amount  = base / life_months
per hour      = month_amount / hours in that calendar month (UTC); the first month counts by its
                hours in service, the last takes what is left, so the life sums to base exactly
finance_hour  = (opening + closing book value of the month) / 2 * annual_rate / 12
                / hours in the month
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from controlplane.finance.money import EXACT, divided, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetTerms:
    """What the arithmetic needs of one version of an asset's cost."""

    price: Decimal
    """Capex, install and spares; of a later version the book value that it took over."""
    residual: Decimal
    life_months: int
    annual_rate: Decimal
    in_service_at: datetime
    starts_at: datetime | None = None
    """Start of a later version; None for the first, which starts in service."""
    retired_at: datetime | None = None

    @property
    def start(self) -> datetime:
        """When this version begins to depreciate."""
        return self.starts_at or self.in_service_at

    @property
    def end(self) -> datetime:
        """When the life is over: the same day and time, `life_months` after going into service."""
        return month_later(self.in_service_at, self.life_months)

    @property
    def base(self) -> Decimal:
        """What is depreciated over the life."""
        return self.price - self.residual


def month_start(moment: datetime) -> datetime:
    """Start of the UTC month of a moment."""
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_later(moment: datetime, months: int) -> datetime:
    """The same share of the month, `months` later; a day the month lacks becomes its last."""
    first = month_start(moment)
    index = first.year * 12 + first.month - 1 + months
    target = first.replace(year=index // 12, month=index % 12 + 1)
    return min(target + (moment - first), _next_month(target))


def hours_in_month(moment: datetime) -> int:
    """Hours of the UTC month of a moment: 672 to 744."""
    first = month_start(moment)
    return int((_next_month(first) - first).total_seconds()) // 3600


def depreciation(terms: AssetTerms, start: datetime, end: datetime) -> Decimal:
    """Depreciation in [start, end) at ten decimals. Adjacent periods sum to the whole, exactly."""
    return depreciated_by(terms, end) - depreciated_by(terms, start)


def depreciated_by(terms: AssetTerms, moment: datetime) -> Decimal:
    """What was depreciated from the start of this version to a moment, at ten decimals."""
    moment = min(moment, terms.retired_at) if terms.retired_at else moment
    if moment <= terms.start:
        return Decimal(0)
    if moment >= terms.end:
        return rounded(terms.base)
    months = divided(EXACT.multiply(terms.base, _months(terms, moment)), _months(terms, terms.end))
    return rounded(months)


def book_value(terms: AssetTerms, moment: datetime) -> Decimal:
    """Value on the books at a moment: the price before service, the residual after the life."""
    return rounded(terms.price) - depreciated_by(terms, moment)


def finance_cost(terms: AssetTerms, start: datetime, end: datetime) -> Decimal:
    """Cost of capital in [start, end), which lies inside one UTC month, at ten decimals."""
    start = max(start, terms.start)
    end = min(end, terms.retired_at) if terms.retired_at else end
    if end <= start:
        return Decimal(0)
    first = month_start(start)
    opening = book_value(terms, max(first, terms.start))
    closing = book_value(terms, _next_month(first))
    month = (opening + closing) / 2 * terms.annual_rate / 12
    return rounded(
        divided(EXACT.multiply(month, _hours(end - start)), Decimal(hours_in_month(first)))
    )


def _months(terms: AssetTerms, moment: datetime) -> Decimal:
    """Months from the start of the version to a moment, each weighing its share of hours.

    At the end of the first version this is `life_months` by definition: the last month takes what
    is left of it, whatever its length.
    """
    if moment >= terms.end and terms.starts_at is None:
        return Decimal(terms.life_months)
    current = month_start(moment)
    before = _months_before(terms, current)
    hours = _hours(moment - max(current, terms.start))
    if _next_month(current) < terms.end or terms.starts_at is not None:
        return before + divided(hours, Decimal(hours_in_month(current)))
    lasting = _hours(terms.end - max(current, terms.start))
    left = Decimal(terms.life_months) - before
    return before + divided(EXACT.multiply(left, hours), lasting)


def _months_before(terms: AssetTerms, current: datetime) -> Decimal:
    """Months from the start of the version to the start of a calendar month."""
    first = month_start(terms.start)
    if first >= current:
        return Decimal(0)
    started = divided(_hours(_next_month(first) - terms.start), Decimal(hours_in_month(first)))
    return started + (current.year - first.year) * 12 + current.month - first.month - 1


def _hours(period: timedelta) -> Decimal:
    return divided(Decimal(period // timedelta(microseconds=1)), Decimal(3_600_000_000))


def _next_month(first: datetime) -> datetime:
    return (first + timedelta(days=32)).replace(day=1)
