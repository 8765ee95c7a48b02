"""Facts of one node over time: timeline, utilisation, cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Avg, Max, Sum
from django.utils.translation import gettext as _

from controlplane.audit.models import AuditEntry
from controlplane.common import permissions
from controlplane.finance.models import LedgerHour
from controlplane.telemetry.models import UtilisationHour
from controlplane.tenancy.models import User
from inventory.models import Node


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a timeline."""

    at: datetime
    what: str
    detail: str
    who: str


@dataclass(frozen=True, slots=True)
class CostLine:
    """One component of a node's cost."""

    name: object
    per_hour: Decimal
    share: float


@dataclass(frozen=True, slots=True)
class NodeCost:
    """Cost per hour over the last full day in the ledger."""

    lines: Sequence[CostLine]
    per_hour: Decimal
    currency: str
    hours: int
    until: datetime
    source: str
    evidence: str
    kilowatts: Decimal
    power_source: str


def timeline(node: Node, *, limit: int = 50) -> list[Moment]:
    """Audit entries, role changes and findings of a node, newest first; three queries."""
    entries = AuditEntry.objects.filter(object_type="inventory.node", object_id=str(node.pk))
    moments = [
        Moment(entry.time, entry.action, entry.reason, _actor(entry))
        for entry in entries.select_related("actor").order_by("-time", "-pk")[:limit]
    ]
    for assignment in node.role_assignments.select_related("pool", "change_plan")[:limit]:
        plan = assignment.change_plan.number if assignment.change_plan else ""
        what = _("role %(role)s in %(pool)s") % {
            "role": assignment.get_role_display(),
            "pool": assignment.pool.slug,
        }
        moments.append(Moment(assignment.valid_from, what, assignment.reason, plan))
    for finding in node.findings.all()[:limit]:
        detail = f"{finding.intended or '?'} ≠ {finding.observed or '?'}"
        what = _("finding: %(kind)s") % {"kind": finding.get_kind_display()}
        moments.append(Moment(finding.seen_at, what, detail, ""))
    return sorted(moments, key=lambda moment: moment.at, reverse=True)[:limit]


def _actor(entry: AuditEntry) -> str:
    return entry.actor.display_name if entry.actor else entry.get_actor_kind_display()


def utilisation_hours(node: Node, *, since: datetime) -> list[tuple[datetime, float | None, str]]:
    """Mean utilisation of the node's accelerators by hour, with the weakest evidence word."""
    rows = (
        UtilisationHour.objects.filter(accelerator__node=node, hour__gte=since)
        .order_by("hour")
        .values("hour")
        .annotate(mean=Avg("utilisation"), evidence=Max("source"))
    )
    return [(row["hour"], row["mean"], row["evidence"]) for row in rows]


def node_cost(user: User, node: Node) -> NodeCost | None:
    """Mean cost per hour over the newest 24 hours of the ledger; None if it has none.

    Raises NotPermittedError for people who may not read the ledger.
    """
    permissions.require(user, "finance.view_ledger")
    newest = LedgerHour.objects.filter(node=node).select_related("asset_cost").first()
    if newest is None:
        return None
    rows = LedgerHour.objects.filter(node=node, hour__gt=newest.hour - timedelta(hours=24))
    sums = rows.aggregate(
        seconds=Sum("seconds"), kilowatts=Avg("kilowatts"),
        **{name: Sum(name) for name in [*LedgerHour.COMPONENTS, "total"]},
    )  # fmt: skip
    hours = Decimal(sums["seconds"]) / 3600
    total = sums["total"] / hours
    names = _component_names()
    lines = [
        CostLine(names[name], sums[name] / hours, float(sums[name] / sums["total"]))
        for name in LedgerHour.COMPONENTS
        if sums[name]
    ]
    return NodeCost(
        lines=lines, per_hour=total, currency=newest.currency, hours=round(hours),
        until=newest.hour + timedelta(seconds=newest.seconds), source=newest.source,
        evidence=newest.asset_cost.evidence, kilowatts=sums["kilowatts"],
        power_source=newest.power_source,
    )  # fmt: skip


def _component_names() -> dict[str, str]:
    return {
        "depreciation": _("Depreciation"),
        "finance": _("Finance"),
        "power": _("Power"),
        "write_off": _("Write-off"),
    }
