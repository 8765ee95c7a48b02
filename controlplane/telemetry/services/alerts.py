"""Find in the roll-ups what a person should look at; open and resolve alerts by it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.telemetry.models import Alert, Evidence, ScrapeTarget, UtilisationHour

WINDOW = timedelta(hours=24)
LOOK_BACK = timedelta(days=35)
SLOW_SHARE = 0.5
"""An accelerator below this share of its sisters' median is slow; noise stays within a third."""
MINIMUM_HOURS = 6
"""Hours with output that a verdict needs; fewer say nothing."""
MINIMUM_SISTERS = 2
SILENT_AFTER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """One thing that the figures say."""

    kind: str
    fingerprint: str
    node_id: UUID
    accelerator_id: UUID | None
    since: datetime
    source: str
    facts: dict[str, Any] = field(default_factory=dict)


@transaction.atomic
def detect_alerts(*, now: datetime | None = None) -> list[Alert]:
    """Open an alert per fact that is true and unknown so far; resolve those that are over.

    Returns the alerts that it opened. Running it again opens nothing.
    """
    now = now or timezone.now()
    facts = {fact.fingerprint: fact for fact in [*_slow(now), *_silent(now)]}
    open_alerts = {row.fingerprint: row for row in Alert.objects.filter(resolved_at__isnull=True)}
    Alert.objects.filter(
        fingerprint__in=open_alerts.keys() - facts.keys(), resolved_at__isnull=True
    ).update(resolved_at=now)
    return Alert.objects.bulk_create(
        [
            Alert(
                kind=fact.kind,
                fingerprint=fact.fingerprint,
                node_id=fact.node_id,
                accelerator_id=fact.accelerator_id,
                since=fact.since,
                opened_at=now,
                facts=fact.facts,
                source=fact.source,
            )
            for fingerprint, fact in sorted(facts.items())
            if fingerprint not in open_alerts
        ]
    )


def _slow(now: datetime) -> list[_Fact]:
    """Accelerators whose output while busy is far below that of their class in the same hours.

    The class is accelerator model x pool x role, because another role does other work.
    """
    by_class = defaultdict(lambda: defaultdict(dict))  # class -> hour -> accelerator -> row
    rows = (
        UtilisationHour.objects.filter(
            hour__gte=now - LOOK_BACK, output_tokens_per_second__isnull=False
        )
        .order_by("hour")
        .values(
            "hour", "accelerator", "accelerator__node", "accelerator__model", "pool", "role",
            "output_tokens_per_second", "source",
        )
    )  # fmt: skip
    for row in rows:
        key = (row["accelerator__model"], row["pool"], row["role"])
        by_class[key][row["hour"]][row["accelerator"]] = row
    return [fact for hours in by_class.values() for fact in _slow_in_class(hours, now)]


def _slow_in_class(hours: dict[datetime, dict[UUID, Any]], now: datetime) -> list[_Fact]:
    ratios: dict[UUID, list[tuple[datetime, float, float, Any]]] = defaultdict(list)
    for hour, rows in sorted(hours.items()):
        for accelerator, row in rows.items():
            sisters = [
                other["output_tokens_per_second"]
                for key, other in rows.items()
                if key != accelerator
            ]
            if len(sisters) >= MINIMUM_SISTERS:
                value, usual = row["output_tokens_per_second"], median(sisters)
                ratios[accelerator].append((hour, value, usual, row))
    facts = (_slow_fact(accelerator, series, now) for accelerator, series in ratios.items())
    return [fact for fact in facts if fact is not None]


def _slow_fact(
    accelerator: UUID, series: Sequence[tuple[datetime, float, float, Any]], now: datetime
) -> _Fact | None:
    recent = [(value, usual) for hour, value, usual, _ in series if hour >= now - WINDOW]
    if len(recent) < MINIMUM_HOURS:
        return None
    value = median(value for value, _ in recent)
    usual = median(usual for _, usual in recent)
    if value >= SLOW_SHARE * usual:
        return None
    last = series[-1][3]
    return _Fact(
        kind=Alert.Kind.SLOWER_THAN_CLASS,
        fingerprint=f"{Alert.Kind.SLOWER_THAN_CLASS}:{accelerator.hex}",
        node_id=last["accelerator__node"],
        accelerator_id=accelerator,
        since=_slow_since(series),
        source=last["source"],
        facts={
            "output_tokens_per_second": round(value, 1),
            "class_median": round(usual, 1),
            "share_of_class": round(value / usual, 3),
            "hours": len(recent),
        },
    )


def _slow_since(series: Sequence[tuple[datetime, float, float, Any]]) -> datetime:
    """Start of the run of slow hours that lasts until the end; one odd hour does not break it."""
    since, odd = series[-1][0], 0
    for hour, value, usual, _ in reversed(series):
        if value < SLOW_SHARE * usual:
            since, odd = hour, 0
        else:
            odd += 1
        if odd > 2:
            break
    return since


def _silent(now: datetime) -> list[_Fact]:
    """Sources that are known and have not answered for a while."""
    targets = ScrapeTarget.objects.filter(active=True, failing_since__lte=now - SILENT_AFTER)
    return [
        _Fact(
            kind=Alert.Kind.EXPORTER_SILENT,
            fingerprint=f"{Alert.Kind.EXPORTER_SILENT}:{target.pk.hex}",
            node_id=target.node_id,
            accelerator_id=None,
            since=target.failing_since or now,
            source=target.source or Evidence.MEASURED,
            facts={"kind": target.kind, "url": target.url, "error": target.last_error},
        )
        for target in targets
    ]
