"""One hour of one node: its components, its total and where its accelerator-seconds went."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from controlplane.finance.classes import CostKey, Span, add_up, seconds_by_class
from controlplane.finance.depreciation import AssetTerms, book_value, depreciation, finance_cost
from controlplane.finance.money import split_exact
from controlplane.finance.power import Power, power_cost

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HourCost:
    """Components of one hour at ten decimals; power is None where it is unknown."""

    seconds: int
    depreciation: Decimal
    finance: Decimal
    power: Decimal | None
    write_off: Decimal

    @property
    def total(self) -> Decimal:
        """Sum of the components that are known."""
        return self.depreciation + self.finance + (self.power or Decimal(0)) + self.write_off


@dataclass(frozen=True, slots=True)
class ClassCost:
    """Accelerator-seconds and money of one class."""

    key: CostKey
    accelerator_seconds: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class AcceleratorHour:
    """One accelerator's part of an hour, and what held in it."""

    spans: Sequence[Span]
    start: datetime
    end: datetime


def covered(terms: AssetTerms, hour: datetime, *, now: datetime) -> tuple[datetime, datetime]:
    """The part of the hour on the books so far; empty if the start is not before the end."""
    end = min(hour + HOUR, now, terms.retired_at or now)
    return max(hour, terms.in_service_at), end


def hour_cost(
    terms: AssetTerms,
    *,
    start: datetime,
    end: datetime,
    power: Power,
    pue: Decimal | None,
    tariff_per_kwh: Decimal | None,
) -> HourCost:
    """Cost of a node in [start, end), which lies inside one hour."""
    seconds = int((end - start).total_seconds())
    retires = terms.retired_at is not None and start < terms.retired_at <= end
    return HourCost(
        seconds=seconds,
        depreciation=depreciation(terms, start, end),
        finance=finance_cost(terms, start, end),
        power=power_cost(
            kilowatts=power.kilowatts, pue=pue, tariff_per_kwh=tariff_per_kwh, seconds=seconds
        ),
        write_off=book_value(terms, end) if retires else Decimal(0),
    )


def class_costs(accelerators: Sequence[AcceleratorHour], *, total: Decimal) -> list[ClassCost]:
    """Split a node's hour by the seconds of its accelerators; the parts sum to the total exactly.

    A node without accelerators has no classes.
    """
    seconds = add_up(
        seconds_by_class(each.spans, start=each.start, end=each.end) for each in accelerators
    )
    if not any(seconds.values()):
        return []
    names = {"\x1f".join(key): key for key in seconds}
    parts = split_exact(total, {name: Decimal(seconds[key]) for name, key in names.items()})
    return [
        ClassCost(key=key, accelerator_seconds=seconds[key], amount=parts[name])
        for name, key in names.items()
    ]
