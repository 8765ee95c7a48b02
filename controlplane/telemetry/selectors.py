"""Reads of telemetry: who may see it, and utilisation over a period with its coverage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, FloatField, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Cast

from controlplane.common import permissions
from controlplane.telemetry.models import (
    Alert,
    EngineCounter,
    EngineHour,
    ScrapeTarget,
    UtilisationHour,
)
from controlplane.tenancy.models import User

GROUPS = {
    "vendor": "accelerator__vendor",
    "model": "accelerator__model__slug",
    "node": "accelerator__node__hostname",
    "role": "role",
    "pool": "pool",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilisationFigures:
    """Busy share of a group over a period. None is no data."""

    group: tuple[str, ...]
    utilisation: float | None
    """Weighted by samples, over the accelerators with data."""
    accelerators: int
    accelerators_with_data: int
    coverage: float | None
    """Share of the expected samples that are there, 0 to 1."""
    output_tokens_per_second: float | None
    """Mean over accelerator-hours with output, while busy."""
    sources: Sequence[str]
    not_scraped_since: datetime | None
    """Earliest silence among accelerators that are silent in the newest hour."""


def targets_for_viewer(user: User) -> QuerySet[ScrapeTarget]:
    """Sources that are or were scraped; tenants see none."""
    rows = ScrapeTarget.objects.select_related("node").prefetch_related("accelerators")
    return permissions.restrict(rows, user, "telemetry.view_scrapetarget")


def counters_for_viewer(user: User) -> QuerySet[EngineCounter]:
    """Counters of engines, also of those that ended; tenants see none."""
    rows = EngineCounter.objects.select_related("target__node")
    return permissions.restrict(rows, user, "telemetry.view_enginecounter")


def utilisation_for_viewer(user: User) -> QuerySet[UtilisationHour]:
    """Hours of accelerators; tenants see none."""
    rows = UtilisationHour.objects.select_related("accelerator__node", "accelerator__model")
    return permissions.restrict(rows, user, "telemetry.view_utilisationhour")


def engine_hours_for_viewer(user: User) -> QuerySet[EngineHour]:
    """Hours of engines; tenants see none."""
    rows = EngineHour.objects.select_related("node")
    return permissions.restrict(rows, user, "telemetry.view_enginehour")


def alerts_for_viewer(user: User) -> QuerySet[Alert]:
    """Alerts, open ones first; tenants see none."""
    rows = Alert.objects.select_related("node", "accelerator").order_by(
        F("resolved_at").desc(nulls_first=True), "-opened_at", "pk"
    )
    return permissions.restrict(rows, user, "telemetry.view_alert")


def utilisation_by(
    hours: QuerySet[UtilisationHour],
    *,
    group_by: Sequence[str],
    start: datetime,
    end: datetime,
) -> list[UtilisationFigures]:
    """Utilisation per group (names of GROUPS) over hours in [start, end), in order; two queries."""
    paths = [GROUPS[name] for name in group_by]
    rows = hours.filter(hour__gte=start, hour__lt=end)
    sums = (
        rows.order_by(*paths)
        .values_list(*paths)
        .annotate(
            busy=Sum(
                Cast("utilisation", FloatField()) * Cast("samples", FloatField()),
                filter=Q(utilisation__isnull=False),
            ),
            told=Sum("samples", filter=Q(utilisation__isnull=False), default=0),
            all_told=Sum("samples"),
            expected=Sum("expected_samples"),
            count=Count("accelerator", distinct=True),
            with_data=Count("accelerator", distinct=True, filter=Q(utilisation__isnull=False)),
            speed=Sum("output_tokens_per_second"),
            speeds=Count("output_tokens_per_second"),
            lowest=Min("source"),
            highest=Max("source"),
        )
    )
    silent = _silent(rows, paths)
    width = len(paths)
    return [_figures(row[:width], row[width:], silent.get(tuple(row[:width]))) for row in sums]


def _silent(
    rows: QuerySet[UtilisationHour], paths: Sequence[str]
) -> dict[tuple[str, ...], datetime]:
    """Since when somebody in the group is silent, by the newest hour there is."""
    newest = rows.order_by("-hour").values("hour")[:1]
    found = (
        rows.filter(hour=newest, not_scraped_since__isnull=False)
        .order_by()
        .values_list(*paths)
        .annotate(since=Min("not_scraped_since"))
    )
    return {tuple(row[:-1]): row[-1] for row in found}


def _figures(
    group: Iterable[str], sums: Sequence[object], silent: datetime | None
) -> UtilisationFigures:
    busy, told, all_told, expected, count, with_data, speed, speeds, lowest, highest = sums
    return UtilisationFigures(
        group=tuple(group),
        utilisation=_share(busy, told),
        accelerators=int(str(count)),
        accelerators_with_data=int(str(with_data)),
        coverage=_share(all_told, expected),
        output_tokens_per_second=_share(speed, speeds),
        sources=sorted({str(lowest), str(highest)}),
        not_scraped_since=silent,
    )


def _share(part: object, whole: object) -> float | None:
    return float(str(part)) / float(str(whole)) if part is not None and whole else None
