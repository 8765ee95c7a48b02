"""What clients saw under each routing policy, from the events of one window."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum

from controlplane.metering import digest
from controlplane.metering.models import UsageEventRow

_DELIVERED = Q(delivered=True)
_OK = _DELIVERED & Q(outcome="ok")
_REFUSED = Q(outcome="refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures:
    """One policy in one window. None is no data."""

    policy: str
    requests_ok: int
    requests_failed: int
    """Failed, aborted and refused requests."""
    prompt_tokens: int
    output_tokens: int
    ttft_p50_seconds: float | None
    ttft_p90_seconds: float | None
    output_tokens_per_second: float | None
    """Output tokens over the time from the first request to the last response."""
    prefix_hit_rate: float | None
    first_request_at: datetime
    last_response_at: datetime

    @property
    def seconds(self) -> float:
        """From the first request to the last response."""
        return (self.last_response_at - self.first_request_at).total_seconds()


def policy_figures(
    *, pool: str, project: str | None = None, start: datetime, end: datetime
) -> list[PolicyFigures]:
    """Figures per policy of attempts that ended in [start, end), by policy name.

    The window lies within the retention of events (35 days). Latency within 2 %.
    """
    events = UsageEventRow.objects.filter(pool=pool, ended_at__gte=start, ended_at__lt=end)
    if project is not None:
        events = events.filter(project=project)
    sums: Iterable[Any] = events.order_by("policy").values("policy").annotate(**_sums())
    digests = _ttft(events)
    return [_figures(row, digests[row["policy"]]) for row in sums]


def _sums() -> dict[str, Any]:
    return {
        "ok": Count("pk", filter=_OK),
        "failed": Count("pk", filter=(_DELIVERED & ~Q(outcome="ok")) | _REFUSED),
        "prompt": Sum(F("input_uncached") + F("cache_read"), filter=_DELIVERED, default=0),
        "read": Sum("cache_read", filter=_DELIVERED, default=0),
        "output": Sum(F("output") + F("reasoning"), filter=_DELIVERED, default=0),
        "first": Min("received_at"),
        "last": Max("ended_at"),
    }


def _ttft(events: QuerySet[UsageEventRow]) -> dict[str, dict[int, int]]:
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    rows = (
        events.filter(_OK, ttft_bucket__isnull=False)
        .order_by()
        .values_list("policy", "ttft_bucket")
        .annotate(answers=Count("pk"))
    )
    for policy, bucket, answers in rows:
        counts[policy][bucket] = answers
    return counts


def _figures(row: dict[str, Any], ttft: dict[int, int]) -> PolicyFigures:
    counts = digest.from_counts(ttft)
    seconds = (row["last"] - row["first"]).total_seconds()
    return PolicyFigures(
        policy=row["policy"],
        requests_ok=row["ok"],
        requests_failed=row["failed"],
        prompt_tokens=row["prompt"],
        output_tokens=row["output"],
        ttft_p50_seconds=digest.quantile(counts, 0.5),
        ttft_p90_seconds=digest.quantile(counts, 0.9),
        output_tokens_per_second=row["output"] / seconds if seconds > 0 and row["ok"] else None,
        prefix_hit_rate=row["read"] / row["prompt"] if row["prompt"] else None,
        first_request_at=row["first"],
        last_response_at=row["last"],
    )
