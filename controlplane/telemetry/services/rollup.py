"""Hourly roll-ups: recomputed from samples, so that a second run writes the same rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Avg, Count, FloatField, Q, Sum
from django.utils import timezone

from controlplane.telemetry.models import (
    EngineHour,
    EngineSample,
    ScrapeTarget,
    UtilisationHour,
)
from controlplane.telemetry.services.scrape import SCRAPE_SECONDS

HOUR = timedelta(hours=1)
KEEP_SAMPLES = timedelta(hours=48)

_SUMS = [
    "prompt_tokens", "prompt_computed_tokens", "prompt_cached_tokens", "prompt_transferred_tokens",
    "generation_tokens", "prefix_queries", "prefix_hits", "prefill_seconds", "decode_seconds",
]  # fmt: skip
_ENGINE_FIELDS = [
    "updated_at", "endpoint", "pool", "role", "node", "accelerator_count", "samples",
    "expected_samples", "busy_seconds", "observed_seconds", "running_average", "waiting_average",
    "kv_usage_average", "source", *_SUMS,
]  # fmt: skip
_UTILISATION_FIELDS = [
    "updated_at", "utilisation", "memory_usage", "output_tokens_per_second", "samples",
    "expected_samples", "role", "pool", "source", "not_scraped_since",
]  # fmt: skip


def hour_of(moment: datetime) -> datetime:
    """Start of the hour of a moment."""
    return moment.replace(minute=0, second=0, microsecond=0)


@transaction.atomic
def recompute_hour(*, hour: datetime, now: datetime | None = None) -> int:
    """Sum one hour's samples per engine and per accelerator; returns the number of engines."""
    now = now or timezone.now()
    targets = _targets_in(hour, now=now)
    sums = _sums(hour)
    engines = [
        _engine_hour(target, hour, sums[target.pk], now=now)
        for target in targets
        if target.pk in sums and target.kind == ScrapeTarget.Kind.ENGINE
    ]
    EngineHour.objects.bulk_create(
        engines,
        update_conflicts=True,
        unique_fields=EngineHour.KEY,
        update_fields=_ENGINE_FIELDS,
    )
    UtilisationHour.objects.bulk_create(
        _utilisation(targets, hour, sums, now=now),
        update_conflicts=True,
        unique_fields=UtilisationHour.KEY,
        update_fields=_UTILISATION_FIELDS,
    )
    return len(engines)


def delete_old_samples(*, now: datetime | None = None) -> int:
    """Delete samples that are in roll-ups since long; returns how many."""
    deleted, _ = EngineSample.objects.filter(at__lt=(now or timezone.now()) - KEEP_SAMPLES).delete()
    return deleted


def _targets_in(hour: datetime, *, now: datetime) -> list[ScrapeTarget]:
    """Targets that were active at some time of the hour, so far."""
    return list(
        ScrapeTarget.objects.filter(created_at__lt=min(hour + HOUR, now))
        .filter(Q(ended_at__isnull=True) | Q(ended_at__gte=hour))
        .prefetch_related("accelerators")
        .order_by("created_at", "pk")
    )


def _sums(hour: datetime) -> dict[Any, dict[str, Any]]:
    """Sums of the hour's samples by target."""
    rows: Iterable[Any] = (
        EngineSample.objects.filter(at__gte=hour, at__lt=hour + HOUR)
        .order_by()
        .values("target")
        .annotate(
            samples=Count("pk"),
            observed=Sum("seconds"),
            gauged=Sum("seconds", filter=Q(running__isnull=False)),
            busy=Sum("seconds", filter=Q(running__gt=0), default=0.0, output_field=FloatField()),
            running=Avg("running"),
            waiting=Avg("waiting"),
            kv=Avg("kv_usage"),
            **{f"sum_{name}": Sum(name) for name in _SUMS},
        )
    )
    return {row["target"]: row for row in rows}


def _expected(target: ScrapeTarget, hour: datetime, *, samples: int, now: datetime) -> int:
    """Samples that the schedule has for the part of the hour in which the target was active."""
    start = max(hour, target.created_at)
    end = min(hour + HOUR, now, target.ended_at or now)
    return max(samples, int(max((end - start).total_seconds(), 0.0) // SCRAPE_SECONDS))


def _engine_hour(
    target: ScrapeTarget, hour: datetime, sums: dict[str, Any], *, now: datetime
) -> EngineHour:
    return EngineHour(
        endpoint=target.endpoint,
        instance=target.instance,
        pool=target.pool,
        role=target.role,
        node_id=target.node_id,
        accelerator_count=len(target.accelerators.all()),
        hour=hour,
        samples=sums["samples"],
        expected_samples=_expected(target, hour, samples=sums["samples"], now=now),
        busy_seconds=None if sums["gauged"] is None else sums["busy"],
        observed_seconds=sums["observed"],
        running_average=sums["running"],
        waiting_average=sums["waiting"],
        kv_usage_average=sums["kv"],
        source=target.source,
        **{name: sums[f"sum_{name}"] for name in _SUMS},
    )


def _utilisation(
    targets: Sequence[ScrapeTarget], hour: datetime, sums: dict[Any, Any], *, now: datetime
) -> list[UtilisationHour]:
    """One row per accelerator that something should have told about."""
    by_accelerator = defaultdict(list)
    for target in targets:
        for accelerator in target.accelerators.all():
            by_accelerator[accelerator.pk].append(target)
    return [
        _accelerator_hour(accelerator, told, hour, sums, now=now)
        for accelerator, told in sorted(by_accelerator.items())
    ]


def _accelerator_hour(
    accelerator: Any,
    told: Sequence[ScrapeTarget],
    hour: datetime,
    sums: dict[Any, Any],
    *,
    now: datetime,
) -> UtilisationHour:
    """Engines that followed each other on one accelerator count together."""
    rows = [sums[target.pk] for target in told if target.pk in sums]
    busy, gauged = _sum(row["busy"] for row in rows), _sum(row["gauged"] for row in rows)
    output = _sum(row["sum_generation_tokens"] for row in rows)
    kv = [row["kv"] for row in rows if row["kv"] is not None]
    latest = told[-1]
    return UtilisationHour(
        accelerator_id=accelerator,
        hour=hour,
        utilisation=min(busy / gauged, 1.0) if busy is not None and gauged else None,
        memory_usage=sum(kv) / len(kv) if kv else None,
        output_tokens_per_second=output / busy if busy and output and _answers(told) else None,
        samples=sum(row["samples"] for row in rows),
        expected_samples=sum(
            _expected(target, hour, samples=sums.get(target.pk, _NONE)["samples"], now=now)
            for target in told
        ),
        role=latest.role,
        pool=latest.pool,
        source=latest.source,
        not_scraped_since=None if rows else latest.failing_since,
    )


_NONE = {"samples": 0}


def _answers(told: Iterable[ScrapeTarget]) -> bool:
    """True if the engines make output; a prefill engine's one token per prompt is none."""
    return all(target.role != "prefill" for target in told)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
