"""Who sees which decisions. People of a tenant see their own, without the fleet behind them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, QuerySet, Sum
from django.utils import timezone

from controlplane.common import permissions
from controlplane.decisions.models import Decision, RouterReading, ShadowHour
from controlplane.tenancy.models import User

FLEET_PARTS = (
    "candidates", "rejected", "removed", "inputs", "shadows", "fallbacks", "runner_up",
    "margin_seconds", "degraded", "candidate_count",
)  # fmt: skip
"""What a record says of other endpoints and of the load on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowFigures:
    """One shadow policy over a period; None is no data."""

    policy: str
    live: str
    asked: int
    agreement: float | None
    """Share of requests with the same destination."""
    regret_seconds: float | None
    """Mean seconds that its choice is dearer; negative when it is cheaper."""
    ttft_seconds: float | None
    live_ttft_seconds: float | None
    until: datetime | None


def decisions_for_viewer(user: User) -> QuerySet[Decision]:
    """Decisions that the user may see; people of a tenant see those of their own."""
    if not permissions.allows(user, "routing.view_decision"):
        return Decision.objects.none()
    if user.tenant is None:
        return Decision.objects.all()
    return Decision.objects.filter(tenant=user.tenant.slug)


def record_for_viewer(row: Decision, user: User) -> dict[str, Any]:
    """The record, for people of a tenant without what it says of the fleet."""
    if user.tenant_id is None:
        return dict(row.record)
    return {name: value for name, value in row.record.items() if name not in FLEET_PARTS}


def readings_for_viewer(user: User) -> QuerySet[RouterReading]:
    """How far each router has been read; tenants see none."""
    return permissions.restrict(RouterReading.objects.all(), user, "routing.view_routerreading")


def shadow_hours_for_viewer(user: User) -> QuerySet[ShadowHour]:
    """Hours of shadow policies; tenants see none."""
    return permissions.restrict(ShadowHour.objects.all(), user, "routing.view_shadowhour")


def shadow_figures(user: User, *, pool: str = "", hours: int = 24) -> list[ShadowFigures]:
    """Each shadow policy over the last hours, the one with the least regret first."""
    since = timezone.now() - timedelta(hours=hours)
    rows = shadow_hours_for_viewer(user).filter(hour__gt=since)
    if pool:
        rows = rows.filter(pool=pool)
    sums = rows.order_by().values("policy", "live").annotate(
        **{f"sum_{name}": Sum(name) for name in ShadowHour.SUMS}, until=Max("updated_at")
    )  # fmt: skip
    found = [_figures(row) for row in sums]
    return sorted(found, key=lambda row: (row.regret_seconds is None, row.regret_seconds or 0.0))


def _figures(row: Mapping[str, Any]) -> ShadowFigures:
    asked, priced = row["sum_asked"], row["sum_priced"]

    def mean(name: str) -> float | None:
        return row[f"sum_{name}"] / priced if priced else None

    return ShadowFigures(
        policy=row["policy"],
        live=row["live"],
        asked=asked,
        agreement=row["sum_agreed"] / asked if asked else None,
        regret_seconds=mean("regret_seconds"),
        ttft_seconds=mean("ttft_seconds"),
        live_ttft_seconds=mean("live_ttft_seconds"),
        until=row["until"],
    )
