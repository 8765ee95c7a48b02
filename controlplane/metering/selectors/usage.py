"""Usage of a viewer: hours, sums over groups, and how far usage is complete."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Min, Q, QuerySet, Sum
from django.db.models.functions import TruncDay, TruncHour, TruncMonth

from controlplane.common import permissions
from controlplane.metering.models import (
    Reconciliation,
    RouterProgress,
    SegmentRefusal,
    UsageHour,
    UsageSegment,
)
from controlplane.metering.selectors.counts import ROUTERS_OWN
from controlplane.serving.models import Router
from controlplane.tenancy.models import User

HOUR = timedelta(hours=1)
GROUPS = ("tenant", "project", "model", "role", "key", "pool", "node", "policy")
GRANULARITIES = {"hour": TruncHour, "day": TruncDay, "month": TruncMonth}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """Sums over one group and period."""

    period_start: datetime | None
    """Start of the hour, day or month; None if the whole range is one row."""
    group: dict[str, str]
    counts: dict[str, int]
    buckets: dict[str, int]
    waste: dict[str, int]
    first_request_at: datetime | None
    last_response_at: datetime | None
    sources: list[str] = field(default_factory=list)
    complete: bool = False
    data_quality: list[str] = field(default_factory=list)

    @property
    def total_tokens(self) -> int:
        """All tokens of the five buckets."""
        return sum(self.buckets.values())


def usage_hours_for_viewer(user: User) -> QuerySet[UsageHour]:
    """Hours that the user may see: all for the platform's people, else those of the own tenant."""
    if not permissions.allows(user, "metering.view_usagehour"):
        return UsageHour.objects.none()
    if user.tenant is None:
        return UsageHour.objects.all()
    return UsageHour.objects.filter(~ROUTERS_OWN, tenant=user.tenant.slug)


def segments_for_viewer(user: User) -> QuerySet[UsageSegment]:
    """Segments of routers; tenants see none."""
    return permissions.restrict(UsageSegment.objects.all(), user, "metering.view_usagesegment")


def routers_for_viewer(user: User) -> QuerySet[RouterProgress]:
    """How far routers are read; tenants see none."""
    return permissions.restrict(RouterProgress.objects.all(), user, "metering.view_routerprogress")


def refusals_for_viewer(user: User) -> QuerySet[SegmentRefusal]:
    """Segments that were refused; tenants see none."""
    return permissions.restrict(SegmentRefusal.objects.all(), user, "metering.view_segmentrefusal")


def reconciliations_for_viewer(user: User) -> QuerySet[Reconciliation]:
    """Reconciliations of pools; tenants see none."""
    return permissions.restrict(Reconciliation.objects.all(), user, "metering.view_reconciliation")


def usage_grouped(
    hours: QuerySet[UsageHour],
    *,
    group_by: Sequence[str] = (),
    granularity: str | None = None,
    limit: int | None = None,
) -> list[UsageTotals]:
    """Sums per group (names of GROUPS) and per hour, day or month in UTC, in order.

    The sums over all groups equal the row without groups. An empty range without groups is no row.
    At most `limit` rows come back. A day or month is complete once all of it has been delivered.
    """
    keys = list(group_by)
    if granularity:
        hours = hours.annotate(period_start=GRANULARITIES[granularity]("hour"))
        keys = ["period_start", *keys]
    names = [*UsageHour.COUNTS, *UsageHour.BUCKETS, *UsageHour.WASTE]
    sums: dict[str, Any] = {f"sum_{name}": Sum(name) for name in names}
    sums |= {
        "first": Min("first_request_at"),
        "last": Max("last_response_at"),
        "latest_hour": Max("hour"),
        "lowest_source": Min("source"),
        "highest_source": Max("source"),
    }
    until = watermark()
    if keys:
        rows = list(hours.order_by(*keys).values(*keys).annotate(**sums)[:limit])
    else:
        rows = [row for row in [hours.order_by().aggregate(**sums)] if row["first"]]
    return [_totals(row, group_by, granularity, until) for row in rows]


def watermark() -> datetime | None:
    """Moment before which every router has delivered everything; None if nobody has delivered.

    A router that was declared lost is left out; one that never delivered holds everything back.
    """
    progress = {row.router: row for row in RouterProgress.objects.filter(lost_at__isnull=True)}
    lost = set(
        RouterProgress.objects.filter(lost_at__isnull=False).values_list("router", flat=True)
    )
    enabled = Router.objects.filter(enabled=True).values_list("name", flat=True)
    names = (set(enabled) | progress.keys()) - lost
    moments = [progress[name].complete_until if name in progress else None for name in names]
    known = [moment for moment in moments if moment is not None]
    return min(known) if known and len(known) == len(moments) else None


def _totals(
    row: dict[str, Any], group_by: Sequence[str], granularity: str | None, until: datetime | None
) -> UsageTotals:
    end = _period_end(row, granularity)
    return UsageTotals(
        period_start=row.get("period_start"),
        group={name: row[name] for name in group_by},
        counts={name: row[f"sum_{name}"] for name in UsageHour.COUNTS},
        buckets={name: row[f"sum_{name}"] for name in UsageHour.BUCKETS},
        waste={name: row[f"sum_{name}"] for name in UsageHour.WASTE},
        first_request_at=row["first"],
        last_response_at=row["last"],
        sources=sorted({row["lowest_source"], row["highest_source"]}),
        complete=until is not None and end <= until,
        data_quality=_quality(row),
    )


def _period_end(row: dict[str, Any], granularity: str | None) -> datetime:
    """End of the row's day or month, else of the latest hour in it."""
    if granularity == "day":
        return row["period_start"] + timedelta(days=1)  # type: ignore[no-any-return]  # a time
    if granularity == "month":
        return (row["period_start"] + timedelta(days=32)).replace(day=1)  # type: ignore[no-any-return]  # a time
    return row["latest_hour"] + HOUR  # type: ignore[no-any-return]  # a time


def _quality(row: dict[str, Any]) -> list[str]:
    """Flags of figures that are not the engine's own count."""
    flags = {
        "counted_by_router": row["sum_counted_by_router"],
        "uncounted": row["sum_uncounted"],
        "aborted": row["sum_requests_aborted"],
    }
    return [name for name, value in flags.items() if value]


def usage_between(
    hours: QuerySet[UsageHour], *, start: datetime, end: datetime
) -> QuerySet[UsageHour]:
    """Hours in [start, end)."""
    return hours.filter(Q(hour__gte=start) & Q(hour__lt=end))
