"""Cost per million tokens by role, with the method and the utilisation beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import FloatField, Max, Min, QuerySet, Sum
from django.db.models.functions import Cast

from controlplane.finance.models import ClassHour, LedgerHour
from controlplane.finance.units import Phases, RoleUse, method_of, per_million, split_phases
from controlplane.telemetry.models import EngineHour, UtilisationHour

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCost:
    """What one phase of one role cost in a period. None is no data, never 0."""

    pool: str
    role: str
    phase: str
    """`prompt` for computed prompt tokens, `output` for output tokens."""
    cost: Decimal
    tokens: int | None
    cost_per_million_tokens: Decimal | None
    currency: str
    method: str
    utilisation: float | None
    """Busy share of the role's accelerators; a unit cost means nothing without it."""
    coverage: float | None
    sources: Sequence[str] = field(default_factory=tuple)


def unit_costs(hours: QuerySet[LedgerHour], *, start: datetime, end: datetime) -> list[UnitCost]:
    """Costs per phase by pool and role over hours in [start, end); a fixed number of queries."""
    costs = _role_costs(hours, start=start, end=end)
    uses = _uses(start=start, end=end)
    busy = _utilisation(start=start, end=end)
    found: list[UnitCost] = []
    for key, cost in sorted(costs.items()):
        pool, role = key
        in_pool = {other: use for (name, other), use in uses.items() if name == pool}
        use = uses.get(key, RoleUse())
        method = method_of(role, in_pool)
        phases = split_phases(cost["amount"], role, use, method)
        found += _rows(key, cost, phases, use, method=method, busy=busy.get(key, (None, None)))
    return found


def _rows(
    key: _Key,
    cost: Mapping[str, Any],
    phases: Phases,
    use: RoleUse,
    *,
    method: str,
    busy: tuple[float | None, float | None],
) -> list[UnitCost]:
    parts = (
        ("prompt", phases.prompt, use.prompt_computed_tokens),
        ("output", phases.output, use.output_tokens),
    )
    return [
        UnitCost(
            pool=key[0],
            role=key[1],
            phase=phase,
            cost=amount,
            tokens=tokens,
            cost_per_million_tokens=per_million(amount, tokens),
            currency=cost["currency"],
            method=method,
            utilisation=busy[0],
            coverage=busy[1],
            sources=tuple(sorted({cost["lowest"], cost["highest"]})),
        )
        for phase, amount, tokens in parts
        if amount is not None
    ]


def _role_costs(
    hours: QuerySet[LedgerHour], *, start: datetime, end: datetime
) -> dict[_Key, dict[str, Any]]:
    rows = (
        ClassHour.objects.filter(
            cost_class=ClassHour.CostClass.ASSIGNED,
            ledger_hour__in=hours.filter(hour__gte=start, hour__lt=end).order_by(),
        )
        .order_by()
        .values("pool", "role")
        .annotate(
            sum_amount=Sum("amount"),
            currency=Min("ledger_hour__currency"),
            lowest=Min("ledger_hour__source"),
            highest=Max("ledger_hour__source"),
        )
    )
    return {(row["pool"], row["role"]): row | {"amount": row["sum_amount"]} for row in rows}


def _uses(*, start: datetime, end: datetime) -> dict[_Key, RoleUse]:
    rows = (
        EngineHour.objects.filter(hour__gte=start, hour__lt=end)
        .order_by()
        .values("pool", "role")
        .annotate(
            computed=Sum("prompt_computed_tokens"),
            output=Sum("generation_tokens"),
            prefill=Sum("prefill_seconds"),
            decode=Sum("decode_seconds"),
        )
    )
    return {
        (row["pool"], row["role"]): RoleUse(
            prompt_computed_tokens=row["computed"],
            output_tokens=row["output"],
            prefill_seconds=row["prefill"],
            decode_seconds=row["decode"],
        )
        for row in rows
    }


def _utilisation(
    *, start: datetime, end: datetime
) -> dict[_Key, tuple[float | None, float | None]]:
    """Busy share weighted by samples, and coverage, per pool and role."""
    rows = UtilisationHour.objects.filter(hour__gte=start, hour__lt=end).order_by()
    weighted = (
        rows.filter(utilisation__isnull=False)
        .values_list("pool", "role")
        .annotate(
            busy=Sum(Cast("utilisation", FloatField()) * Cast("samples", FloatField())),
            told=Sum("samples"),
        )
    )
    counts = rows.values_list("pool", "role").annotate(
        there=Sum("samples"), expected=Sum("expected_samples")
    )
    busy = {(pool, role): share / told for pool, role, share, told in weighted if told}
    return {
        (pool, role): (busy.get((pool, role)), there / expected if expected else None)
        for pool, role, there, expected in counts
    }
