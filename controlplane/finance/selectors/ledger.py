"""The ledger as people see it: by node, by class, month to date, and as a series."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Max, QuerySet, Sum
from django.db.models.functions import TruncDay

from controlplane.common import permissions
from controlplane.finance.models import AssetCost, ClassHour, LedgerHour, SiteCostPeriod
from controlplane.tenancy.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthCost:
    """Ledger of the running UTC month; `total` is None when no hour is in it."""

    start: datetime
    until: datetime | None
    """Newest hour."""
    total: Decimal | None
    currency: str
    sources: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLedger:
    """Sums of one node over a period."""

    node: str
    hostname: str
    seconds: int
    depreciation: Decimal
    finance: Decimal
    power: Decimal | None
    write_off: Decimal
    total: Decimal
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSum:
    """Sums of one class over a period."""

    cost_class: str
    pool: str
    role: str
    accelerator_seconds: int
    amount: Decimal


def ledger_for_viewer(user: User) -> QuerySet[LedgerHour]:
    """Ledger hours for whoever may see costs; tenants never see the provider's."""
    rows = LedgerHour.objects.select_related("node")
    return permissions.restrict(rows, user, "finance.view_ledger")


def asset_costs_for_viewer(user: User) -> QuerySet[AssetCost]:
    """Versions of asset costs for whoever may see costs."""
    rows = AssetCost.objects.select_related("node", "author")
    return permissions.restrict(rows, user, "finance.view_assetcost")


def site_costs_for_viewer(user: User) -> QuerySet[SiteCostPeriod]:
    """Site figures by month for whoever may see costs."""
    rows = SiteCostPeriod.objects.select_related("site")
    return permissions.restrict(rows, user, "finance.view_sitecostperiod")


def month_to_date(hours: QuerySet[LedgerHour], *, now: datetime) -> MonthCost:
    """Sum of the running month's hours; one query."""
    start = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows = (
        hours.filter(hour__gte=start, hour__lte=now)
        .order_by("source")
        .values("source", "currency")
        .annotate(sum_total=Sum("total"), newest=Max("hour"))
    )
    found = list(rows)
    return MonthCost(
        start=start,
        until=max((row["newest"] for row in found), default=None),
        total=sum((row["sum_total"] for row in found), Decimal(0)) if found else None,
        currency=found[0]["currency"] if found else "",
        sources=sorted({row["source"] for row in found}),
    )


def ledger_by_node(
    hours: QuerySet[LedgerHour], *, start: datetime, end: datetime
) -> list[NodeLedger]:
    """Sums per node over hours in [start, end), by hostname; one query."""
    rows: Iterable[Any] = (
        hours.filter(hour__gte=start, hour__lt=end)
        .order_by("node__hostname")
        .values("node", "node__hostname", "currency")
        .annotate(
            sum_seconds=Sum("seconds"),
            sum_total=Sum("total"),
            **{f"sum_{name}": Sum(name) for name in LedgerHour.COMPONENTS},
        )
    )
    return [
        NodeLedger(
            node=str(row["node"]),
            hostname=row["node__hostname"],
            seconds=row["sum_seconds"],
            total=row["sum_total"],
            currency=row["currency"],
            **{name: row[f"sum_{name}"] for name in LedgerHour.COMPONENTS},
        )
        for row in rows
    ]


def classes_between(
    hours: QuerySet[LedgerHour], *, start: datetime, end: datetime
) -> list[ClassSum]:
    """Accelerator-seconds and money by class, pool and role; they sum to the ledger exactly."""
    rows = (
        ClassHour.objects.filter(
            ledger_hour__in=hours.filter(hour__gte=start, hour__lt=end).order_by()
        )
        .order_by("cost_class", "pool", "role")
        .values("cost_class", "pool", "role")
        .annotate(seconds=Sum("accelerator_seconds"), sum_amount=Sum("amount"))
    )
    return [
        ClassSum(
            cost_class=row["cost_class"],
            pool=row["pool"],
            role=row["role"],
            accelerator_seconds=row["seconds"],
            amount=row["sum_amount"],
        )
        for row in rows
    ]


def cumulative_cost(
    hours: QuerySet[LedgerHour], *, start: datetime, end: datetime
) -> list[tuple[datetime, Decimal]]:
    """Start of each UTC day in [start, end) and the sum up to its end, for a chart."""
    rows = (
        hours.filter(hour__gte=start, hour__lt=end)
        .annotate(day=TruncDay("hour", tzinfo=UTC))
        .order_by("day")
        .values("day")
        .annotate(sum_total=Sum("total"))
    )
    series, total = [], Decimal(0)
    for row in rows:
        total += row["sum_total"]
        series.append((row["day"], total))
    return series
