"""Change plans and the board of roles."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, IntegerField, Max, Q, QuerySet, Value, When

from controlplane.common import permissions
from controlplane.console.selectors.fleet import nodes_for
from controlplane.serving.models import AssignedAccelerator, ChangePlan, Wave
from controlplane.tenancy.models import User
from inventory.models import Accelerator, Node

_LETTERS = {"prefill": "p", "decode": "d", "both": "b"}


def plans_for(user: User) -> QuerySet[ChangePlan]:
    """Plans that the person may see, what needs somebody first, then newest first."""
    urgency = Case(
        When(state=ChangePlan.State.APPLYING, then=Value(0)),
        When(state=ChangePlan.State.PROPOSED, then=Value(1)),
        When(state=ChangePlan.State.APPROVED, then=Value(2)),
        When(state=ChangePlan.State.DRAFT, then=Value(3)),
        default=Value(4),
        output_field=IntegerField(),
    )
    rows = (
        ChangePlan.objects.select_related("pool", "author")
        .annotate(
            urgency=urgency,
            wave_count=Count("waves"),
            waves_done=Count("waves", filter=Q(waves__state=Wave.State.SUCCEEDED)),
        )
        .order_by("urgency", "-serial")
    )
    return permissions.restrict(rows, user, "serving.view_changeplan")


def waiting_for(user: User) -> list[ChangePlan]:
    """Proposed plans that this person may approve: not their own, not expired."""
    if not permissions.allows(user, "serving.approve_changeplan"):
        return []
    return list(plans_for(user).filter(state=ChangePlan.State.PROPOSED).exclude(author=user)[:10])


def plan_version(plan: ChangePlan) -> tuple[Any, ...]:
    """What changes whenever the page of a plan would; one query."""
    waves = plan.waves.aggregate(at=Max("updated_at"), count=Count("pk"))
    return (plan.updated_at, plan.state, plan.paused_at, waves["at"], waves["count"])


@dataclass(slots=True)
class BoardRow:
    """A node on the board: one letter of a pattern per accelerator, now and as planned."""

    node: Node
    now: list[str] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    plan: ChangePlan | None = None
    roles: dict[str, int] = field(default_factory=dict)
    planned_roles: dict[str, int] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)

    @property
    def blocked(self) -> str:
        """State or health that keeps the node from being chosen; "" if nothing does."""
        if self.node.state != Node.State.READY:
            return self.node.state
        health = str(self.node.effective_health)  # type: ignore[attr-defined]  # annotated
        return health if health == "failed" else ""


def board(user: User, *, vendor: str = "", site: str = "") -> list[tuple[str, str, list[BoardRow]]]:
    """Nodes by site and vendor with the role of each accelerator; four queries."""
    nodes = nodes_for(user).exclude(state=Node.State.RETIRED)
    if vendor:
        nodes = nodes.filter(vendor=vendor)
    if site:
        nodes = nodes.filter(cluster__site__slug=site)
    rows = {node.pk: BoardRow(node) for node in nodes[:200]}
    held = _held([row.node for row in rows.values()])
    changes = _planned(user)
    devices = Accelerator.objects.filter(node__in=rows).exclude(state=Accelerator.State.RETIRED)
    for device in devices.order_by("node", "slot"):
        _add(rows[device.node_id], device, held, changes)
    return _grouped(rows.values())


def _held(nodes: Sequence[Node]) -> dict[Any, tuple[str, str]]:
    members = AssignedAccelerator.objects.filter(open=True, accelerator__node__in=nodes)
    columns = ("accelerator_id", "assignment__role", "assignment__pool__slug")
    return {device: (role, pool) for device, role, pool in members.values_list(*columns)}


def _planned(user: User) -> dict[str, tuple[ChangePlan, str]]:
    """For each accelerator's id in an open plan: the plan and the role afterwards."""
    opened = plans_for(user).filter(
        state__in=[ChangePlan.State.PROPOSED, ChangePlan.State.APPROVED, ChangePlan.State.APPLYING]
    )
    return {
        str(item.get("accelerator")): (plan, plan.role)
        for plan in opened
        for item in plan.diff
        if isinstance(item, dict)
    }


def _add(
    row: BoardRow,
    device: Accelerator,
    held: dict[Any, tuple[str, str]],
    changes: dict[str, tuple[ChangePlan, str]],
) -> None:
    role, pool = held.get(device.pk, ("", ""))
    row.now.append(_LETTERS.get(role, "i"))
    _count(row.roles, role or "unassigned")
    if pool:
        _count(row.pools, pool)
    change = changes.get(str(device.pk))
    after = change[1] if change else role
    row.plan = change[0] if change else row.plan
    row.planned.append(_LETTERS.get(after, "i"))
    _count(row.planned_roles, after or "unassigned")


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _grouped(rows: Iterable[BoardRow]) -> list[tuple[str, str, list[BoardRow]]]:
    groups: dict[tuple[str, str], list[BoardRow]] = defaultdict(list)
    for row in rows:
        groups[row.node.cluster.site.slug, row.node.vendor].append(row)
    return [(site, vendor, found) for (site, vendor), found in sorted(groups.items())]


def last_change(user: User) -> datetime | None:
    """When any plan that the person may see changed last."""
    at: datetime | None = plans_for(user).order_by().aggregate(at=Max("updated_at"))["at"]
    return at
