"""The load of a pool as it was measured: what routers wrote of each request."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Avg, Count, Min, Q, Sum

from controlplane.decisions.models import Decision
from controlplane.metering.models import UsageEventRow
from controlplane.serving.models import Pool
from routing.planner.problem import Traffic

LEAST_REQUESTS = 20
"""Below, a mean says nothing; the guards of change plans ask for as many."""
LEAST_SECONDS = 60.0
MOST_GROUPS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Answered requests of a window. Measured; lengths are means in tokens."""

    traffic: Traffic
    requests: int
    since: datetime
    until: datetime


def measured_load(pool: Pool, *, since: datetime, until: datetime) -> Load | None:
    """What the pool answered in a window; None with too few requests.

    A pool younger than the window counts from its first request. Shared tokens are what engines
    found in their caches, so they are a lower bound; the number of different beginnings is that of
    the sampled decisions.
    """
    rows = UsageEventRow.objects.filter(
        pool=pool.slug, received_at__gte=since, received_at__lt=until, delivered=True, outcome="ok"
    )
    found = rows.aggregate(
        requests=Count("pk"),
        first=Min("received_at"),
        uncached=Avg("input_uncached"),
        cached=Avg("cache_read"),
        written=Avg("cache_write"),
        output=Avg("output"),
        hits=Count("pk", filter=Q(cache_read__gt=0)),
        hit_tokens=Sum("cache_read"),
    )
    if found["requests"] < LEAST_REQUESTS or found["output"] is None:
        return None
    began = max(since, found["first"])
    seconds = max(LEAST_SECONDS, (until - began).total_seconds())
    parts = (found["uncached"] or 0.0, found["cached"] or 0.0, found["written"] or 0.0)
    prompt = max(1, round(sum(parts)))
    shared = min(prompt, round((found["hit_tokens"] or 0) / found["hits"])) if found["hits"] else 0
    groups = _beginnings(pool, began, until) if shared else 0
    traffic = Traffic(
        rate_qps=found["requests"] / seconds,
        prompt_tokens=prompt,
        output_tokens=max(1, round(found["output"])),
        shared_tokens=shared if groups else 0,
        groups=groups,
    )
    return Load(traffic=traffic, requests=found["requests"], since=began, until=until)


def _beginnings(pool: Pool, since: datetime, until: datetime) -> int:
    rows = Decision.objects.filter(pool=pool.slug, at__gte=since, at__lt=until).exclude(prefix="")
    found = rows.aggregate(count=Count("prefix", distinct=True))
    return min(MOST_GROUPS, int(found["count"] or 0))
