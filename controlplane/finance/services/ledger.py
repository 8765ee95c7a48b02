"""The ledger, recomputed from asset costs, site costs, power and the role ledger."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.finance.hours import (
    HOUR,
    AcceleratorHour,
    ClassCost,
    class_costs,
    covered,
    hour_cost,
)
from controlplane.finance.models import ClassHour, LedgerHour
from controlplane.finance.power import UNKNOWN
from controlplane.finance.selectors.inputs import LedgerInputs, ledger_inputs
from controlplane.telemetry.models import Evidence
from inventory.models import Node
from inventory.models.words import Health

RECENT_HOURS = 2
_FIELDS = [
    "updated_at", "seconds", "currency", *LedgerHour.COMPONENTS, "total", "kilowatts",
    "power_source", "pue", "tariff_per_kwh", "asset_cost", "source", "state_unknown",
]  # fmt: skip

_Key = tuple[UUID, datetime]


@transaction.atomic
def recompute_ledger(
    *,
    start: datetime,
    end: datetime,
    now: datetime | None = None,
    source: str | None = None,
) -> int:
    """Compute every hour in [start, end) of every node with a cost; returns the number of rows.

    Running it again writes the same rows. The running hour covers the seconds up to `now`.
    """
    now = now or timezone.now()
    evidence = source or (Evidence.SIMULATED if settings.SIMULATED else Evidence.MODELLED)
    inputs = ledger_inputs(start=start, end=end, now=now)
    rows: dict[_Key, LedgerHour] = {}
    classes: dict[_Key, list[ClassCost]] = {}
    for hour in _hours(start, end):
        for node in inputs.nodes:
            computed = _row(inputs, node, hour, now=now)
            if computed is not None:
                row, parts = computed
                row.source = evidence
                rows[node.pk, hour], classes[node.pk, hour] = row, parts
    LedgerHour.objects.bulk_create(
        rows.values(),
        batch_size=2000,
        update_conflicts=True,
        unique_fields=LedgerHour.KEY,
        update_fields=_FIELDS,
    )
    _store_classes(classes, start=start, end=end)
    return len(rows)


def recompute_recent(*, now: datetime | None = None) -> int:
    """Compute the running hour and the one before it."""
    now = now or timezone.now()
    end = now.replace(minute=0, second=0, microsecond=0) + HOUR
    return recompute_ledger(start=end - RECENT_HOURS * HOUR, end=end, now=now)


def _hours(start: datetime, end: datetime) -> list[datetime]:
    first = start.replace(minute=0, second=0, microsecond=0)
    return [first + number * HOUR for number in range(max(0, -(-(end - first) // HOUR)))]


def _row(
    inputs: LedgerInputs, node: Node, hour: datetime, *, now: datetime
) -> tuple[LedgerHour, list[ClassCost]] | None:
    """The hour of a node with its classes; None if it is not on the books then."""
    version = inputs.version_at(node.pk, min(hour + HOUR, now) - timedelta(seconds=1))
    if version is None:
        return None
    terms = inputs.terms(node, version)
    begin, end = covered(terms, hour, now=now)
    if begin >= end:
        return None
    site = inputs.site_at(node, hour)
    power = inputs.power_of(node.pk, version, hour, at=end)
    tariff = site.tariff_per_kwh if site.currency == version.currency else None
    cost = hour_cost(terms, start=begin, end=end, power=power, pue=site.pue, tariff_per_kwh=tariff)
    parts = class_costs(
        [
            AcceleratorHour(inputs.spans.get(row.pk, ()), start=first, end=last)
            for row, first, last in inputs.lives(node.pk, start=begin, end=end)
        ],
        total=cost.total,
    )
    row = LedgerHour(
        node=node,
        hour=hour,
        seconds=cost.seconds,
        currency=version.currency,
        depreciation=cost.depreciation,
        finance=cost.finance,
        power=cost.power,
        write_off=cost.write_off,
        total=cost.total,
        kilowatts=power.kilowatts,
        power_source=UNKNOWN if cost.power is None else power.source,
        pue=site.pue,
        tariff_per_kwh=tariff,
        asset_cost=version,
        state_unknown=node.health == Health.UNKNOWN,
    )
    return row, parts


def _store_classes(classes: dict[_Key, list[ClassCost]], *, start: datetime, end: datetime) -> None:
    """Write the classes of the period's hours; classes that an hour no longer has go."""
    stored = LedgerHour.objects.filter(hour__gte=start - HOUR, hour__lt=end)
    ids = {(node, hour): pk for pk, node, hour in stored.values_list("pk", "node", "hour")}
    rows = [
        ClassHour(
            ledger_hour_id=ids[key],
            cost_class=part.key.cost_class,
            pool=part.key.pool,
            role=part.key.role,
            accelerator_seconds=part.accelerator_seconds,
            amount=part.amount,
        )
        for key, parts in classes.items()
        for part in parts
    ]
    ClassHour.objects.bulk_create(
        rows,
        batch_size=4000,
        update_conflicts=True,
        unique_fields=["ledger_hour", "cost_class", "pool", "role"],
        update_fields=["updated_at", "accelerator_seconds", "amount"],
    )
    wanted = {(row.ledger_hour_id, row.cost_class, row.pool, row.role) for row in rows}
    there = ClassHour.objects.filter(ledger_hour__in=[ids[key] for key in classes]).values_list(
        "pk", "ledger_hour", "cost_class", "pool", "role"
    )
    gone = [pk for pk, *key in there if tuple(key) not in wanted]
    ClassHour.objects.filter(pk__in=gone).delete()
