"""Costs of the month from the ledger, and the comparison of two routing policies."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.db.models import Max, Sum
from django.db.models.functions import TruncDay

from controlplane.common import permissions
from controlplane.finance.models import ClassHour, LedgerHour
from controlplane.tenancy.models import User
from inventory.models import Node


@dataclass(frozen=True, slots=True)
class Month:
    """The ledger from the first of the month (UTC) to its newest hour."""

    start: datetime
    total: Decimal
    currency: str
    cumulative: Sequence[tuple[datetime, Decimal]]
    """End of each day (or the newest hour) and the sum until then."""
    until: datetime
    hours: int
    source: str


@dataclass(frozen=True, slots=True)
class ClassRow:
    """Where accelerator-hours and money of the month went."""

    cost_class: str
    role: str
    pattern: str
    accelerator_hours: float
    amount: Decimal
    share: float


@dataclass(frozen=True, slots=True)
class NodeRow:
    """Ledger of one node in the month."""

    node: Node
    hours: float
    per_hour: Decimal
    depreciation: Decimal
    finance: Decimal
    power: Decimal
    total: Decimal
    currency: str


def month_start(now: datetime | None = None) -> datetime:
    """First moment of the month, UTC."""
    moment = now or datetime.now(UTC)
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_to_date(user: User, *, start: datetime | None = None) -> Month | None:
    """The month's ledger; None if it has no hour. Raises NotPermittedError."""
    permissions.require(user, "finance.view_ledger")
    start = start or month_start()
    rows = LedgerHour.objects.filter(hour__gte=start, hour__lt=_next_month(start))
    newest = rows.order_by("-hour").first()
    if newest is None:
        return None
    days = rows.annotate(day=TruncDay("hour", tzinfo=UTC)).order_by("day").values("day")
    total, cumulative = Decimal(0), []
    for found in days.annotate(amount=Sum("total"), last=Max("hour")):
        total += found["amount"]
        cumulative.append((found["last"], total))
    return Month(
        start=start,
        total=total,
        currency=newest.currency,
        cumulative=cumulative,
        until=newest.hour,
        hours=int((newest.hour - start).total_seconds() // 3600) + 1,
        source=newest.source,
    )


def classes_of(user: User, *, start: datetime) -> list[ClassRow]:
    """Accelerator-hours and money of the month by class and role, largest classes first."""
    permissions.require(user, "finance.view_ledger")
    sums = (
        ClassHour.objects.filter(
            ledger_hour__hour__gte=start, ledger_hour__hour__lt=_next_month(start)
        )
        .order_by()
        .values("cost_class", "role")
        .annotate(seconds=Sum("accelerator_seconds"), money=Sum("amount"))
    )
    rows = list(sums)
    total = sum((row["money"] for row in rows), Decimal(0))
    found = [
        ClassRow(
            cost_class=row["cost_class"], role=row["role"],
            pattern=row["role"] if row["cost_class"] == "assigned" else row["cost_class"],
            accelerator_hours=row["seconds"] / 3600, amount=row["money"],
            share=float(row["money"] / total) if total else 0.0,
        )
        for row in rows
    ]  # fmt: skip
    order = ["assigned", "idle", "unavailable", "transition"]
    roles = ["prefill", "decode", "both", ""]
    return sorted(found, key=lambda row: (order.index(row.cost_class), roles.index(row.role)))


def ledger_by_node(user: User, *, start: datetime) -> list[NodeRow]:
    """Components of the month by node, in the order of host names; two queries."""
    permissions.require(user, "finance.view_ledger")
    sums = (
        LedgerHour.objects.filter(hour__gte=start, hour__lt=_next_month(start))
        .order_by()
        .values("node", "currency")
        .annotate(
            seconds=Sum("seconds"), depreciation=Sum("depreciation"), finance=Sum("finance"),
            power=Sum("power"), total=Sum("total"),
        )
    )  # fmt: skip
    found = list(sums)
    nodes = Node.objects.select_related("node_type__accelerator_model").in_bulk(
        [row["node"] for row in found]
    )
    rows = [
        NodeRow(
            node=nodes[row["node"]], hours=row["seconds"] / 3600,
            per_hour=row["total"] * 3600 / row["seconds"], depreciation=row["depreciation"],
            finance=row["finance"], power=row["power"], total=row["total"],
            currency=row["currency"],
        )
        for row in found
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row.node.hostname)


def months_with_ledger() -> list[datetime]:
    """First moments of the months that have ledger hours, newest first, twelve at most."""
    return list(LedgerHour.objects.datetimes("hour", "month", order="DESC", tzinfo=UTC)[:12])


def _next_month(start: datetime) -> datetime:
    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def policy_comparison(user: User) -> None:
    return None
