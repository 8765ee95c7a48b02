"""Latency and cache hits as clients saw them, from hours of usage."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet, Sum

from controlplane.metering import digest
from controlplane.metering.models import UsageHour


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyFigures:
    """Quantiles of answered requests in seconds; None is no data. Relative error 2 %."""

    answers: int
    ttft_p50_seconds: float | None
    ttft_p90_seconds: float | None
    ttft_p95_seconds: float | None
    tpot_p50_seconds: float | None
    tpot_p95_seconds: float | None
    prefix_hit_rate: float | None
    """Share of prompt tokens that came from a cache, 0 to 1."""


def latency_by_pool(
    hours: QuerySet[UsageHour], *, start: datetime, end: datetime
) -> dict[str, LatencyFigures]:
    """Figures per pool over hours in [start, end)."""
    rows = hours.filter(hour__gte=start, hour__lt=end).values_list(
        "pool", "ttft_digest", "tpot_digest", "input_uncached", "cache_read", "cache_write"
    )
    parts: dict[str, list[tuple[Mapping[str, int], Mapping[str, int], int, int]]] = defaultdict(
        list
    )
    for pool, ttft, tpot, uncached, read, write in rows:
        parts[pool].append((ttft, tpot, read, uncached + read + write))
    return {pool: _figures(found) for pool, found in sorted(parts.items())}


def _figures(
    parts: Iterable[tuple[Mapping[str, int], Mapping[str, int], int, int]],
) -> LatencyFigures:
    found = list(parts)
    ttft = digest.merge(part[0] for part in found)
    tpot = digest.merge(part[1] for part in found)
    prompt = sum(part[3] for part in found)
    return LatencyFigures(
        answers=digest.count(ttft),
        ttft_p50_seconds=digest.quantile(ttft, 0.5),
        ttft_p90_seconds=digest.quantile(ttft, 0.9),
        ttft_p95_seconds=digest.quantile(ttft, 0.95),
        tpot_p50_seconds=digest.quantile(tpot, 0.5),
        tpot_p95_seconds=digest.quantile(tpot, 0.95),
        prefix_hit_rate=sum(part[2] for part in found) / prompt if prompt else None,
    )


def prefix_hit_rate(hours: QuerySet[UsageHour], *, start: datetime, end: datetime) -> float | None:
    """Share of prompt tokens from a cache over hours in [start, end); None without prompts."""
    sums = hours.filter(hour__gte=start, hour__lt=end).aggregate(
        uncached=Sum("input_uncached"), read=Sum("cache_read"), write=Sum("cache_write")
    )
    prompt = sum(value or 0 for value in sums.values())
    return (sums["read"] or 0) / prompt if prompt else None
