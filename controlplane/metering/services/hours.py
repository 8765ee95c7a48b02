"""Hours of usage, recomputed from events: a second run writes the same rows."""

from collections import defaultdict
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Min, Q, QuerySet, Sum

from controlplane.metering import selectors
from controlplane.metering.digest import from_counts
from controlplane.metering.models import StaleHour, UsageEventRow, UsageHour
from controlplane.telemetry.models import Evidence

MAX_HOURS_PER_RUN = 200
_KEY = ["tenant", "project", "key", "node", "role", "model", "policy"]
_DELIVERED = Q(delivered=True)
_REFUSED = Q(outcome="refused")
_MEASURES = [
    "updated_at", *UsageHour.COUNTS, *UsageHour.BUCKETS, *UsageHour.WASTE, "ttft_digest",
    "tpot_digest", "first_request_at", "last_response_at",
]  # fmt: skip


def recompute_stale_hours() -> int:
    """Recompute hours that got events since their last sum; returns how many.

    Each hour is one transaction; an hour that another worker has is left to it.
    """
    done = 0
    for pk in list(StaleHour.objects.values_list("pk", flat=True)[:MAX_HOURS_PER_RUN]):
        done += _recompute_stale(pk)
    return done


@transaction.atomic
def _recompute_stale(pk: int) -> int:
    """The mark goes in the transaction of the sums; events that come later mark the hour anew."""
    stale = StaleHour.objects.select_for_update(skip_locked=True).filter(pk=pk).first()
    if stale is None:
        return 0
    stale.delete()
    recompute_usage_hour(pool=stale.pool, hour=stale.hour)
    return 1


@transaction.atomic
def recompute_usage_hour(*, pool: str, hour: datetime) -> int:
    """Sum the hour's events per key, node, role, model and policy; returns the number of rows."""
    events = UsageEventRow.objects.filter(pool=pool, hour=hour).order_by()
    ttft, tpot = _digests(events, "ttft_bucket"), _digests(events, "tpot_bucket")
    source = selectors.evidence_of_pool(pool)
    rows = []
    for sums in events.values(*_KEY).annotate(**_sums()):
        key = tuple(sums[name] for name in _KEY)
        rows.append(
            UsageHour(
                **sums,
                pool=pool,
                hour=hour,
                source=source,
                ttft_digest=from_counts(ttft[key]),
                tpot_digest=from_counts(tpot[key]),
            )
        )
    _delete_other_evidence(rows, pool=pool, hour=hour, source=source)
    UsageHour.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=UsageHour.KEY, update_fields=_MEASURES
    )
    return len(rows)


def _delete_other_evidence(
    rows: list[UsageHour], *, pool: str, hour: datetime, source: str
) -> None:
    """Delete sums of the same events under another word: a pool that changes its engine, or is
    gone, would count twice."""
    keys = {tuple(getattr(row, name) for name in _KEY) for row in rows}
    other = UsageHour.objects.filter(
        pool=pool, hour=hour, source__in=[Evidence.MEASURED, Evidence.SIMULATED]
    ).exclude(source=source)
    twice = [pk for pk, *key in other.values_list("pk", *_KEY) if tuple(key) in keys]
    UsageHour.objects.filter(pk__in=twice).delete()


def _sums() -> dict[str, Any]:
    waste = ~_DELIVERED & ~_REFUSED
    requests = _DELIVERED | _REFUSED
    return {
        "requests": Count("pk", filter=requests),
        "requests_ok": Count("pk", filter=_DELIVERED & Q(outcome="ok")),
        "requests_failed": Count("pk", filter=_DELIVERED & Q(outcome="error")),
        "requests_aborted": Count("pk", filter=_DELIVERED & Q(outcome="aborted")),
        "requests_refused": Count("pk", filter=_REFUSED),
        "attempts_retried": Count("pk", filter=waste & ~selectors.ROUTERS_OWN),
        "counted_by_router": Count("pk", filter=Q(counted_by="counted_by_router")),
        "uncounted": Count("pk", filter=~_REFUSED & ~Q(endpoint="") & Q(counted_by="none")),
        "waste_input_uncached": Sum("input_uncached", filter=waste, default=0),
        "waste_cache_read": Sum("cache_read", filter=waste, default=0),
        "waste_output": Sum("output", filter=waste, default=0),
        # Last, because from here on these names are sums.
        **{name: Sum(name, filter=~waste, default=0) for name in UsageHour.BUCKETS},
        "first_request_at": Min("received_at"),
        "last_response_at": Max("ended_at"),
    }


def _digests(events: QuerySet[UsageEventRow], bucket: str) -> dict[tuple[Any, ...], dict[int, int]]:
    """Counts by bucket for each key, of answers that the client got."""
    counts: dict[tuple[Any, ...], dict[int, int]] = defaultdict(dict)
    found = (
        events.filter(delivered=True, outcome="ok", **{f"{bucket}__isnull": False})
        .values(*_KEY, bucket)
        .annotate(answers=Count("pk"))
    )
    for row in found:
        counts[tuple(row[name] for name in _KEY)][row[bucket]] = row["answers"]
    return counts
