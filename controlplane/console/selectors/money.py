"""Costs of a month and the newest comparison of two policies, by the selectors of finance.

Page and API ask the same functions, so that they cannot disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Max, Min

from controlplane.common import permissions
from controlplane.finance import selectors as finance
from controlplane.finance.models import LedgerHour
from controlplane.finance.selectors.ledger import NodeLedger
from controlplane.metering.models import UsageHour
from controlplane.tenancy.models import User

EVENTS_ARE_KEPT_DAYS = 35
"""Comparisons rest on single events, which metering keeps that long."""
_ORDER = ["assigned", "idle", "unavailable", "transition"]
_ROLES = ["prefill", "decode", "both", ""]


@dataclass(frozen=True, slots=True)
class Month:
    """The ledger of a month (UTC) to its newest hour."""

    start: datetime
    end: datetime
    total: Decimal
    currency: str
    until: datetime
    """End of the newest hour."""
    cumulative: Sequence[tuple[datetime, Decimal]]
    sources: Sequence[str]
    nodes: Sequence[NodeLedger]


@dataclass(frozen=True, slots=True)
class ClassRow:
    """Where accelerator-hours and money of the month went."""

    cost_class: str
    role: str
    pattern: str
    accelerator_hours: float
    amount: Decimal
    share: float


def month_start(now: datetime | None = None) -> datetime:
    """First moment of the month, UTC."""
    moment = now or datetime.now(UTC)
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def next_month(start: datetime) -> datetime:
    """First moment of the month after."""
    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def month_of(user: User, *, start: datetime) -> Month | None:
    """The month's ledger; None if it has no hour. Raises NotPermittedError."""
    permissions.require(user, "finance.view_ledger")
    end = next_month(start)
    hours = finance.ledger_for_viewer(user)
    inside = hours.filter(hour__gte=start, hour__lt=end).order_by()
    newest = inside.order_by("-hour").values("hour", "seconds").first()
    nodes = finance.ledger_by_node(hours, start=start, end=end)
    if newest is None:
        return None
    return Month(
        start=start,
        end=end,
        total=sum((node.total for node in nodes), Decimal(0)),
        currency=nodes[0].currency,
        until=newest["hour"] + timedelta(seconds=newest["seconds"]),
        cumulative=finance.cumulative_cost(hours, start=start, end=end),
        sources=sorted(inside.values_list("source", flat=True).distinct()),
        nodes=nodes,
    )


def classes_of(user: User, month: Month) -> list[ClassRow]:
    """Accelerator-hours and money of the month by class and role."""
    hours = finance.ledger_for_viewer(user)
    sums: dict[tuple[str, str], tuple[int, Decimal]] = {}
    for found in finance.classes_between(hours, start=month.start, end=month.end):
        key = (found.cost_class, found.role)
        seconds, amount = sums.get(key, (0, Decimal(0)))
        sums[key] = (seconds + found.accelerator_seconds, amount + found.amount)
    total = sum((amount for _seconds, amount in sums.values()), Decimal(0))
    rows = [
        ClassRow(
            cost_class=cost_class, role=role, amount=amount, accelerator_hours=seconds / 3600,
            pattern=role if cost_class == "assigned" else cost_class,
            share=float(amount / total) if total else 0.0,
        )
        for (cost_class, role), (seconds, amount) in sums.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (_ORDER.index(row.cost_class), _ROLES.index(row.role)))


def unit_costs_of(user: User, month: Month) -> list[finance.UnitCost]:
    """Cost per million tokens by pool, role and phase."""
    hours = finance.ledger_for_viewer(user)
    return finance.unit_costs(hours, start=month.start, end=month.end)


def months_with_ledger(user: User) -> list[datetime]:
    """First moments of the months that have ledger hours, newest first, twelve at most."""
    hours = LedgerHour.objects.filter(pk__in=finance.ledger_for_viewer(user).values("pk"))
    return list(hours.datetimes("hour", "month", order="DESC", tzinfo=UTC)[:12])


def newest_comparison(user: User) -> finance.PolicyComparison | None:
    """The newest project whose requests were routed by two policies, compared; None without one.

    Raises NotPermittedError for people who may not see costs.
    """
    permissions.require(user, "finance.view_ledger")
    since = datetime.now(UTC) - timedelta(days=EVENTS_ARE_KEPT_DAYS)
    races = (
        UsageHour.objects.filter(hour__gte=since)
        .order_by()
        .values("pool", "project")
        .annotate(
            policies=Count("policy", distinct=True),
            start=Min("first_request_at"),
            end=Max("last_response_at"),
        )
        .filter(policies__gte=2)
        .order_by("-end")
    )
    race = races.first()
    if race is None:
        return None
    found = finance.policy_comparison(
        pool=race["pool"],
        project=race["project"],
        start=race["start"],
        end=race["end"] + timedelta(seconds=1),
    )
    return found if len(found.rows) > 1 else None
