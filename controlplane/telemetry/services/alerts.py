"""Find in the roll-ups what a person should look at; open and resolve alerts by it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple
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


ODD_HOURS = 2


class _Class(NamedTuple):
    """Accelerators that should be alike: another pool or role does other work."""

    model: UUID
    pool: str
    role: str


class _Beside(NamedTuple):
    """Output of an accelerator in an hour, beside the median of its sisters."""

    hour: datetime
    value: float
    usual: float
    row: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """One thing that the figures say; `since` None is looked for when the alert opens."""

    kind: str
    fingerprint: str
    node_id: UUID
    accelerator_id: UUID | None
    since: datetime | None
    source: str
    facts: dict[str, Any] = field(default_factory=dict)
    of_class: _Class | None = None


@transaction.atomic
def detect_alerts(*, now: datetime | None = None) -> list[Alert]:
    """Open an alert per fact that is true and unknown so far; resolve those that are over.

    Returns the alerts that it opened. Running it again opens nothing.
    """
    now = now or timezone.now()
    facts = {fact.fingerprint: fact for fact in [*_slow(now), *_silent(now)]}
    open_alerts = set(
        Alert.objects.filter(resolved_at__isnull=True).values_list("fingerprint", flat=True)
    )
    Alert.objects.filter(
        fingerprint__in=open_alerts - facts.keys(), resolved_at__isnull=True
    ).update(resolved_at=now)
    return Alert.objects.bulk_create(
        [
            Alert(
                kind=fact.kind,
                fingerprint=fact.fingerprint,
                node_id=fact.node_id,
                accelerator_id=fact.accelerator_id,
                since=fact.since or _slow_since(fact, now),
                opened_at=now,
                facts=fact.facts,
                source=fact.source,
            )
            for fingerprint, fact in sorted(facts.items())
            if fingerprint not in open_alerts
        ]
    )


def _slow(now: datetime) -> list[_Fact]:
    """Accelerators whose output while busy is far below that of their class in the same hours."""
    facts = []
    for key, hours in _by_class(since=now - WINDOW, until=now).items():
        for accelerator, series in _beside_sisters(hours).items():
            fact = _slow_fact(key, accelerator, series)
            if fact is not None:
                facts.append(fact)
    return facts


def _by_class(
    *, since: datetime, until: datetime, only: _Class | None = None
) -> dict[_Class, dict[datetime, dict[UUID, Any]]]:
    """Rows with output by class, hour and accelerator."""
    rows = UtilisationHour.objects.filter(
        hour__gte=since, hour__lte=until, output_tokens_per_second__isnull=False
    )
    if only is not None:
        rows = rows.filter(accelerator__model=only.model, pool=only.pool, role=only.role)
    found: dict[_Class, dict[datetime, dict[UUID, Any]]] = defaultdict(lambda: defaultdict(dict))
    columns = (
        "hour", "accelerator", "accelerator__node", "accelerator__model", "pool", "role",
        "output_tokens_per_second", "source",
    )  # fmt: skip
    for row in rows.order_by("hour").values(*columns):
        key = _Class(row["accelerator__model"], row["pool"], row["role"])
        found[key][row["hour"]][row["accelerator"]] = row
    return found


def _beside_sisters(hours: dict[datetime, dict[UUID, Any]]) -> dict[UUID, list[_Beside]]:
    """For each accelerator its output and the median of its sisters', hour by hour."""
    found: dict[UUID, list[_Beside]] = defaultdict(list)
    for hour, rows in sorted(hours.items()):
        for accelerator, row in rows.items():
            sisters = [
                other["output_tokens_per_second"]
                for key, other in rows.items()
                if key != accelerator
            ]
            if len(sisters) >= MINIMUM_SISTERS:
                value = row["output_tokens_per_second"]
                found[accelerator].append(_Beside(hour, value, median(sisters), row))
    return found


def _slow_fact(key: _Class, accelerator: UUID, series: Sequence[_Beside]) -> _Fact | None:
    if len(series) < MINIMUM_HOURS:
        return None
    value = median(hour.value for hour in series)
    usual = median(hour.usual for hour in series)
    if value >= SLOW_SHARE * usual:
        return None
    return _Fact(
        kind=Alert.Kind.SLOWER_THAN_CLASS,
        fingerprint=f"{Alert.Kind.SLOWER_THAN_CLASS}:{accelerator.hex}",
        node_id=series[-1].row["accelerator__node"],
        accelerator_id=accelerator,
        since=None,
        source=series[-1].row["source"],
        facts={
            "output_tokens_per_second": round(value, 1),
            "class_median": round(usual, 1),
            "share_of_class": round(value / usual, 3),
            "hours": len(series),
        },
        of_class=key,
    )


def _slow_since(fact: _Fact, now: datetime) -> datetime:
    """Start of the run of slow hours that lasts until now; two odd hours do not break it."""
    found = _by_class(since=now - LOOK_BACK, until=now, only=fact.of_class)
    hours = next(iter(found.values()), {})
    series = _beside_sisters(hours).get(fact.accelerator_id or UUID(int=0), [])
    since, odd = now, 0
    for hour in reversed(series):
        if hour.value < SLOW_SHARE * hour.usual:
            since, odd = hour.hour, 0
        else:
            odd += 1
        if odd > ODD_HOURS:
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
