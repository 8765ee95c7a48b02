"""Nodes with what other apps know of them: roles, power, findings, cost."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from controlplane.serving.models import AssignedAccelerator, RoleAssignment
from controlplane.telemetry.models import UtilisationHour
from controlplane.tenancy.models import User
from inventory import selectors as inventory
from inventory.models import Accelerator, Cluster, Node


@dataclass(slots=True)
class NodeRow:
    """A row of the list of nodes."""

    node: Node
    accelerators: int = 0
    power_watts: float | None = None
    """Sum over the accelerators that report power; None if none does."""
    # Plain dictionaries: in a template `counter.items` would look up the key "items".
    roles: dict[str, int] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)

    @property
    def unassigned(self) -> int:
        """Accelerators without an open role."""
        return max(0, self.accelerators - sum(self.roles.values()))


@dataclass(frozen=True, slots=True)
class NodeFilters:
    """What the filters of the list offer."""

    vendors: Sequence[str]
    sites: Sequence[str]
    clusters: Sequence[Cluster]


def nodes_for(user: User) -> QuerySet[Node]:
    """Nodes that the person may see; their health is `effective_health`, unknown when stale."""
    return inventory.nodes_for_viewer(user)


def filtered_nodes(user: User, wanted: dict[str, str]) -> QuerySet[Node]:
    """Nodes that match q, vendor, site, health, state and role; retired ones only if asked for."""
    rows = nodes_for(user)
    text = wanted.get("q", "")
    if text:
        rows = rows.filter(_matches(text))
    for name, path in (("vendor", "vendor"), ("site", "cluster__site__slug"),
                       ("health", "effective_health"), ("state", "state")):  # fmt: skip
        if wanted.get(name):
            rows = rows.filter(**{path: wanted[name]})
    if not wanted.get("state"):
        rows = rows.exclude(state=Node.State.RETIRED)
    return _with_role(rows, wanted.get("role", ""))


def _matches(text: str) -> Q:
    serials = Accelerator.objects.filter(serial__iexact=text).values("node")
    return Q(hostname__icontains=text) | Q(tags__contains=[text]) | Q(pk__in=serials)


def _with_role(rows: QuerySet[Node], role: str) -> QuerySet[Node]:
    opened = RoleAssignment.objects.filter(valid_to__isnull=True)
    if role == "unassigned":
        return rows.exclude(pk__in=opened.values("node"))
    if role:
        return rows.filter(pk__in=opened.filter(role=role).values("node"))
    return rows


def node_filters(user: User) -> NodeFilters:
    """Vendors, sites and clusters that occur among the person's nodes; two queries."""
    found = nodes_for(user).order_by()
    rows = set(found.values_list("vendor", "cluster__site__slug", "cluster_id").distinct())
    # By their ids: a subquery of all nodes inside was run once for each cluster by some plans.
    clusters = Cluster.objects.filter(pk__in={cluster for _vendor, _site, cluster in rows})
    return NodeFilters(
        vendors=sorted({vendor for vendor, _site, _cluster in rows}),
        sites=sorted({site for _vendor, site, _cluster in rows}),
        clusters=list(clusters),
    )


def node_rows(nodes: Iterable[Node]) -> list[NodeRow]:
    """Rows for the nodes, in their order; two queries for all of them."""
    rows = {node.pk: NodeRow(node) for node in nodes}
    for node, watts in _live_accelerators(rows).values_list("node_id", "observed_power_watts"):
        row = rows[node]
        row.accelerators += 1
        if watts is not None:
            row.power_watts = (row.power_watts or 0.0) + watts
    members = AssignedAccelerator.objects.filter(open=True, accelerator__node__in=rows)
    for node, role, pool in members.values_list(
        "accelerator__node_id", "assignment__role", "assignment__pool__slug"
    ):
        row = rows[node]
        row.roles[role] = row.roles.get(role, 0) + 1
        row.pools[pool] = row.pools.get(pool, 0) + 1
    return list(rows.values())


def _live_accelerators(nodes: Iterable[UUID]) -> QuerySet[Accelerator]:
    return Accelerator.objects.filter(node__in=nodes).exclude(state=Accelerator.State.RETIRED)


def newest_observation(user: User) -> datetime | None:
    """When the newest observation of any of the person's nodes was made."""
    newest: datetime | None = nodes_for(user).order_by().aggregate(at=Max("observed_at"))["at"]
    return newest


@dataclass(slots=True)
class AcceleratorRow:
    """An accelerator with its open role and the endpoint that runs on it."""

    accelerator: Accelerator
    role: str | None = None
    pool: str | None = None
    endpoint_state: str | None = None
    hour: UtilisationHour | None = None
    """Newest roll-up, two hours old at most; fills in for what the vendor's tool does not say."""

    @property
    def utilisation(self) -> float | None:
        """Busy share as observed, else of the newest hour."""
        seen = self.accelerator.observed_utilisation
        return seen if seen is not None or self.hour is None else self.hour.utilisation

    @property
    def memory_share(self) -> float | None:
        """Share of the memory in use as observed, else of the KV memory in the newest hour."""
        used = self.accelerator.observed_memory_used_mib
        total = self.accelerator.observed_memory_total_mib
        if used is not None and total:
            return used / total
        return None if self.hour is None else self.hour.memory_usage

    @property
    def power_watts(self) -> float | None:
        """Power as observed, else of the newest hour."""
        seen = self.accelerator.observed_power_watts
        return seen if seen is not None or self.hour is None else self.hour.power_watts


def accelerator_rows(node: Node) -> list[AcceleratorRow]:
    """Accelerators of a node by slot, with roles, endpoints and newest hours; four queries."""
    devices = _live_accelerators([node.pk]).select_related("model", "workload").order_by("slot")
    rows = {device.pk: AcceleratorRow(device) for device in devices}
    members = AssignedAccelerator.objects.filter(open=True, accelerator__in=rows)
    for device, role, pool in members.values_list(
        "accelerator_id", "assignment__role", "assignment__pool__slug"
    ):
        rows[device].role, rows[device].pool = role, pool
    _add_endpoints(node, rows)
    since = timezone.now() - timedelta(hours=2)
    hours = UtilisationHour.objects.filter(accelerator__in=rows, hour__gte=since)
    for hour in hours.order_by("hour"):
        rows[hour.accelerator_id].hour = hour
    return list(rows.values())


def _add_endpoints(node: Node, rows: dict[UUID, AcceleratorRow]) -> None:
    live = node.endpoints.live().values_list("workload__accelerator_id", "state")
    for device, state in live:
        if device in rows:
            rows[device].endpoint_state = state


@dataclass(frozen=True, slots=True)
class Span:
    """A role of some slots of a node, from one time to another; None is until today."""

    slots: Sequence[int]
    role: str
    pool: str
    start: datetime
    end: datetime | None
    simulated: bool


def role_spans(node: Node, *, since: datetime) -> list[Span]:
    """Roles of the node's accelerators since a time, oldest first, one span per assignment."""
    assignments = (
        node.role_assignments.filter(Q(valid_to__isnull=True) | Q(valid_to__gt=since))
        .select_related("pool")
        .prefetch_related("members__accelerator")
        .order_by("valid_from", "pk")
    )
    return [_span(assignment) for assignment in assignments]


def _span(assignment: RoleAssignment) -> Span:
    slots = sorted(member.accelerator.slot for member in assignment.members.all())
    return Span(
        slots=slots,
        role=assignment.role,
        pool=assignment.pool.slug,
        start=assignment.valid_from,
        end=assignment.valid_to,
        simulated=assignment.simulated,
    )


def ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers as ranges: a run of neighbours is written as its first and last."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}\N{EN DASH}{run[-1]}" for run in runs
    )


def roles_by_model(user: User) -> dict[str, Counter[str]]:
    """For each accelerator model's slug: how many devices have which role; two queries."""
    visible = nodes_for(user).order_by().exclude(state__in=Node.NOT_DELIVERED)
    devices = Accelerator.objects.filter(node__in=visible.values("pk"))
    devices = devices.exclude(state=Accelerator.State.RETIRED)
    totals = dict(devices.order_by().values_list("model__slug").annotate(count=Count("pk")))
    roles: dict[str, Counter[str]] = defaultdict(Counter)
    opened = AssignedAccelerator.objects.filter(open=True, accelerator__in=devices.values("pk"))
    for model, role, count in (
        opened.order_by()
        .values_list("accelerator__model__slug", "assignment__role")
        .annotate(count=Count("pk"))
    ):
        roles[model][role] = count
    for model, total in totals.items():
        roles[model]["unassigned"] = total - sum(roles[model].values())
    return dict(roles)
