"""Takes in what a cluster says of many nodes at once, in a fixed number of statements per hundred.

An agent that reported within ten minutes knows a node's devices better: then the cluster's look
changes the health of the node only, and never that of a device. A look that says the same as the
one before makes no observation; it moves the times.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model, Q, Value
from django.db.models.functions import Greatest, Lower
from django.utils import timezone

from inventory.discovery import health
from inventory.discovery.base import Doubt, FoundNode
from inventory.discovery.comparing import Comparison, compare
from inventory.discovery.kubernetes import content_of, digest
from inventory.freshness import cutoff, is_stale
from inventory.models import Accelerator, Finding, Node, Observation
from inventory.models.words import Health, HealthReason
from inventory.services.judging import (
    HEALTH,
    devices_view,
    intended,
    model_of,
    reason_of,
    set_health,
    set_node_health,
    tell_health,
    unknown_node,
)
from inventory.services.noting import Look, note

AT_ONCE = 100
"""Nodes of one transaction: locks are held for tenths of a second."""
SOURCE = Observation.Source.KUBERNETES
_NODE = ("observed_at", "cluster_health", "cluster_reason", *HEALTH)
_DEVICE = ("observed_name", "observed_memory_total_mib", *HEALTH)
_CORDONED = (Node.State.CORDONED, Node.State.DRAINING, Node.State.MAINTENANCE)


@dataclass(slots=True)
class Counts:
    """What recording a cluster did."""

    nodes: int = 0
    planned: int = 0
    unknown: int = 0
    """Nodes with accelerators that nobody planned."""
    observations: int = 0
    """Nodes of which something differed from the look before."""
    opened: int = 0
    """Findings that were not open before."""


def record_looks(*, cluster_id: UUID, found: Sequence[FoundNode]) -> Counts:
    """Record looks of one cluster, a hundred nodes per transaction; safe to run again.

    Nodes without accelerators that nobody planned are no business of the fleet and leave no trace.
    A look older than the last one of a node is dropped.
    """
    counts = Counts()
    for start in range(0, len(found), AT_ONCE):
        _record(cluster_id, found[start : start + AT_ONCE], counts)
    return counts


def gone_nodes(*, cluster_id: UUID, present: Iterable[str], seen_at: datetime) -> list[FoundNode]:
    """Looks at delivered nodes that a complete list of the cluster does not hold."""
    there = {hostname.lower() for hostname in present}
    rows = Node.objects.filter(cluster_id=cluster_id).exclude(state__in=Node.NOT_DELIVERED)
    names = rows.order_by("hostname").values_list("hostname", flat=True)
    return [gone(name, seen_at) for name in names if name.lower() not in there]


def gone(hostname: str, seen_at: datetime) -> FoundNode:
    """The look at a node that the cluster does not know."""
    return FoundNode(
        hostname, "", "kubernetes", seen_at, (), state="gone",
        doubts=(Doubt("node-gone", hostname, ""),),
    )  # fmt: skip


def forget_unknown(*, cluster_id: UUID, present: Iterable[str], seen_at: datetime) -> int:
    """Resolve findings about nodes nobody planned that the cluster does not list any more."""
    rows = Finding.objects.filter(
        cluster_id=cluster_id,
        kind=Finding.Kind.UNKNOWN_NODE,
        state=Finding.State.OPEN,
        observation__source=SOURCE,
    ).exclude(hostname__in=list(present))
    return rows.update(state=Finding.State.RESOLVED, closed_at=seen_at, updated_at=timezone.now())


@transaction.atomic
def confirm(*, cluster_id: UUID, seen_at: datetime, but: Iterable[str] = ()) -> int:
    """Say that a watch heard of no change until `seen_at`; returns the number of nodes.

    It holds for nodes that the cluster spoke of before. Devices keep what an agent said of them
    while that is fresh.
    """
    rows = Node.objects.filter(
        cluster_id=cluster_id, cluster_seen_at__lt=seen_at, cluster_seen_at__gte=cutoff(seen_at)
    ).exclude(state=Node.State.RETIRED)
    ids = list(
        rows.exclude(hostname__in=list(but))
        .select_for_update(no_key=True, of=("self",))
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    Node.objects.filter(pk__in=ids).update(observed_at=seen_at, cluster_seen_at=seen_at)
    _touch_devices(ids, seen_at)
    return len(ids)


@transaction.atomic
def _record(cluster_id: UUID, found: Sequence[FoundNode], counts: Counts) -> None:
    nodes = _locked_nodes(cluster_id, found)
    devices = _locked_devices(nodes.values())
    counts.nodes += len(found)
    kept = []
    for each in found:
        node = nodes.get(each.hostname.lower())
        if each.vendor if node is None else _concerns(node, each):
            kept.append((node, each))
    observations = _observations(cluster_id, kept, counts)
    looks, seen, was = [], [], {}
    for (node, each), observation in zip(kept, observations, strict=True):
        if node is None:
            counts.unknown += 1
            looks.append(Look(observation, each.seen_at, [unknown_node(each)]))
            continue
        counts.planned += 1
        was[node.pk] = node.health
        result = _compared(node, devices[node.pk], each)
        seen.append(_Judged(node, devices[node.pk], each, result))
        looks.append(Look(observation, each.seen_at, result.differences))
    _store(seen)
    tell_health((each.node, was[each.node.pk]) for each in seen if was[each.node.pk] != each.health)
    counts.opened += note(cluster_id, looks)


def _concerns(node: Node, found: FoundNode) -> bool:
    """False for a look that arrives late, and for the absence of a node that is still to come."""
    if found.state == "gone" and node.state in Node.NOT_DELIVERED:
        return False
    return node.cluster_seen_at is None or node.cluster_seen_at < found.seen_at


def _locked_nodes(cluster_id: UUID, found: Sequence[FoundNode]) -> dict[str, Node]:
    rows = (
        Node.objects.select_for_update(no_key=True, of=("self",))
        .annotate(lower_hostname=Lower("hostname"))
        .filter(cluster_id=cluster_id, lower_hostname__in=[one.hostname.lower() for one in found])
        .exclude(state=Node.State.RETIRED)
    )
    return {node.hostname.lower(): node for node in rows.order_by("pk")}


def _locked_devices(nodes: Iterable[Node]) -> dict[UUID, list[Accelerator]]:
    rows = (
        Accelerator.objects.select_for_update(no_key=True, of=("self",))
        .filter(node__in=[node.pk for node in nodes])
        .exclude(state=Accelerator.State.RETIRED)
        .select_related("model")
    )
    by_node: dict[UUID, list[Accelerator]] = defaultdict(list)
    for row in rows.order_by("pk"):
        by_node[row.node_id].append(row)
    return by_node


def _observations(
    cluster_id: UUID, kept: Sequence[tuple[Node | None, FoundNode]], counts: Counts
) -> list[Observation]:
    """The last observation where a look says the same, else one of its own."""
    hosts = [node.hostname if node else each.hostname for node, each in kept]
    rows = Observation.objects.filter(cluster_id=cluster_id, source=SOURCE, hostname__in=hosts)
    last = {
        row.hostname: row
        for row in rows.order_by("hostname", "-seen_at").distinct("hostname").defer("content")
    }
    observations, added = [], []
    for hostname, (node, each) in zip(hosts, kept, strict=True):
        content = content_of(each)
        row, sign = last.get(hostname), digest(content)
        if row is None or row.digest != sign or row.node_id != (node.pk if node else None):
            row = Observation(
                cluster_id=cluster_id, node=node, hostname=hostname, vendor=each.vendor,
                source=SOURCE, seen_at=each.seen_at, content=content, digest=sign,
            )  # fmt: skip
            added.append(row)
        elif node is not None:
            row.node = node
        observations.append(row)
    Observation.objects.bulk_create(added)
    counts.observations += len(added)
    return observations


def _compared(node: Node, live: Sequence[Accelerator], found: FoundNode) -> Comparison:
    return compare(
        vendor=node.vendor,
        intended=intended(live),
        found=found,
        model_of=model_of(found.vendor),
        is_cordoned=node.state in _CORDONED,
    )


@dataclass(slots=True)
class _Judged:
    """A planned node, its devices and the look at them."""

    node: Node
    live: Sequence[Accelerator]
    found: FoundNode
    result: Comparison

    @property
    def health(self) -> str:
        return self.node.health


def _judge(one: _Judged) -> list[Accelerator]:
    """Set health of node and devices; returns the devices that the look speaks of."""
    node, found, verdict = one.node, one.found, health.of_cluster(one.found, one.result)
    node.cluster_health, node.cluster_reason = verdict
    views = [verdict]
    spoken_of: Sequence[Accelerator] = one.live
    if not is_stale(node.agent_seen_at, now=found.seen_at):
        views = [devices_view(one.live)] + ([verdict] if verdict != health.NOT_SAID else [])
        spoken_of = ()
    for device in spoken_of:
        _judge_device(device, found, one.result)
    if spoken_of and one.result.matched:
        views.append(devices_view(one.live))
    set_node_health(node, seen_at=found.seen_at, views=views)
    return list(spoken_of)


def _judge_device(device: Accelerator, found: FoundNode, result: Comparison) -> None:
    seen = result.matched.get(device.pk)
    if seen is not None:
        device.observed_name = seen.name or device.observed_name
        device.observed_memory_total_mib = seen.memory_total_mib
        set_health(device, Health(seen.health), reason_of(seen), found.seen_at)
    elif device.pk in result.missing:
        set_health(device, Health.FAILED, HealthReason.MISSING, found.seen_at)
    else:
        state, reason = health.of_unsaid_device(found, result)
        set_health(device, Health(state), HealthReason(reason), found.seen_at)


def _store(seen: Sequence[_Judged]) -> None:
    """Equal changes share one statement: most looks change nothing, or many nodes alike."""
    if not seen:
        return
    seen_at = min(each.found.seen_at for each in seen)
    nodes, devices = [each.node for each in seen], [row for each in seen for row in each.live]
    before = _values(nodes, _NODE) | _values(devices, _DEVICE)
    for each in seen:
        _judge(each)
    for row_model, rows, columns in ((Node, nodes, _NODE), (Accelerator, devices, _DEVICE)):
        for changes, ids in _alike(rows, columns, before).items():
            row_model.objects.filter(pk__in=ids).update(**dict(changes))
    Node.objects.filter(pk__in=[node.pk for node in nodes]).update(
        cluster_seen_at=seen_at, observed_at=Greatest("observed_at", Value(seen_at))
    )
    _touch_devices([node.pk for node in nodes], seen_at)


def _values(rows: Iterable[Model], columns: Sequence[str]) -> dict[Any, list[Any]]:
    return {row.pk: [getattr(row, name) for name in columns] for row in rows}


def _alike(
    rows: Iterable[Model], columns: Sequence[str], before: dict[Any, list[Any]]
) -> dict[tuple[tuple[str, Any], ...], list[Any]]:
    """Ids of rows by what changed in them; rows without a change are left out."""
    groups: dict[tuple[tuple[str, Any], ...], list[Any]] = defaultdict(list)
    for row in rows:
        changes = tuple(
            (name, getattr(row, name))
            for name, was in zip(columns, before[row.pk], strict=True)
            if getattr(row, name) != was
        )
        if changes:
            groups[changes].append(row.pk)
    return groups


def _touch_devices(node_ids: Sequence[UUID], seen_at: datetime) -> None:
    """Devices are as old as the look, unless an agent that is fresh speaks for them.

    Where the look says nothing of a device, its last readings keep their age.
    """
    is_agents = Q(node__agent_seen_at__gte=cutoff(seen_at))
    live = Accelerator.objects.filter(node__in=node_ids).exclude(state=Accelerator.State.RETIRED)
    live.exclude(is_agents).exclude(health=Health.UNKNOWN).update(observed_at=seen_at)
