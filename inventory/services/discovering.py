"""Looks at whole clusters: lists every ten minutes, and follows what changes in between.

One task per cluster, one at a time by a lease, so that a silent cluster holds up nobody else's. A
run lists all nodes when that is due, when a watch lost its place, or when too much changed; else it
follows the watches for seconds and reads only the nodes that changed. Reading only: nothing is
written into a cluster.
"""

import logging
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from controlplane.common import jobs
from controlplane.operations import leases
from inventory.discovery import adoptable
from inventory.discovery.base import FoundNode
from inventory.discovery.kubernetes import digest_of, hostname_of, read_nodes
from inventory.kubernetes.client import ClusterClient
from inventory.kubernetes.errors import (
    AnswerError,
    ClusterError,
    ClusterRefusedError,
    ExpiredError,
    NotFoundError,
)
from inventory.models import Cluster, Discovery, Node
from inventory.services import clusters, recording

logger = logging.getLogger(__name__)

LIST_AFTER = timedelta(minutes=10)
FOLLOW_SECONDS = 2.0
"""Of each of the watches; the tasks come every 20 s, so a worker has time for others."""
RUN_SECONDS = 120.0
MOST_CHANGED = 50
"""Nodes read one by one after a watch; above that the whole list is cheaper."""
MOST_EVENTS = 5_000
NODE = ("v1", "Node")
SLICE_VERSIONS = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1")
POOL_VERSIONS = (
    "inference.networking.k8s.io/v1", "inference.networking.x-k8s.io/v1alpha2",
)  # fmt: skip
SERVICE_VERSIONS = ("serving.kserve.io/v1alpha2", "serving.kserve.io/v1alpha1")
MOST_POOLS = 50
MOST_SLICES = 2_000
"""EndpointSlices that are looked through for engines."""


class EmptyClusterError(AnswerError):
    """A list without a single node: no cluster is so, hence it says nothing."""

    code = "cluster-without-nodes"


@dataclass(slots=True)
class _Changes:
    """What the watches told: Node objects, names whose slices changed, and how far they came."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleted: dict[str, str] = field(default_factory=dict)
    """Object's name to hostname."""
    sliced: set[str] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)
    lasted: bool = True
    """False: a watch was cut before its time, so silence proves nothing."""


def discover_clusters() -> int:
    """Send a task for each cluster of Kubernetes that has a connection; returns how many."""
    rows = Cluster.objects.filter(kind=Cluster.Kind.KUBERNETES).exclude(connection_reference="")
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    for cluster_id in ids:
        jobs.after_commit("inventory.tasks.discover_cluster", str(cluster_id))
    return len(ids)


def discover_cluster(*, cluster_id: UUID, seconds: float = FOLLOW_SECONDS) -> bool:
    """Look at one cluster; False if another run does, or the cluster did not answer.

    What went wrong stands on the row of the discovery; what was seen before stays, with its age.
    """
    cluster = Cluster.objects.filter(pk=cluster_id, kind=Cluster.Kind.KUBERNETES).first()
    holder = uuid.uuid4().hex
    if cluster is None or not cluster.connection_reference:
        return False
    lease = leases.acquire(f"inventory.discovery:{cluster_id}", holder=holder, seconds=RUN_SECONDS)
    if lease is None:
        return False
    row, _is_new = Discovery.objects.get_or_create(cluster=cluster)
    try:
        with clusters.open_client(cluster, seconds=RUN_SECONDS) as client:
            _look(client, row, seconds)
    except ClusterError as error:
        Discovery.objects.filter(pk=row.pk).update(
            error=str(error)[:500], failed_at=timezone.now(), updated_at=timezone.now()
        )
        return False
    finally:
        leases.release(lease)
    return True


def _look(client: ClusterClient, row: Discovery, seconds: float) -> None:
    now = timezone.now()
    is_due = row.listed_at is None or row.listed_at <= now - LIST_AFTER
    if is_due or not row.places:
        _list(client, row)
        return
    try:
        is_followed = _follow(client, row, seconds)
    except ExpiredError:
        is_followed = False
    if not is_followed:
        _list(client, row)


def _list(client: ClusterClient, row: Discovery) -> None:
    """Read everything; places and digests for the watches are those of the lists."""
    started, now = time.monotonic(), timezone.now()
    nodes = client.list(*NODE)
    if not nodes.items:
        raise EmptyClusterError("The cluster lists no node, so nothing is concluded from it.")
    slices, slice_place, without = _slices(client)
    found = read_nodes(nodes.items, slices, seen_at=now, planned=_planned(row.cluster_id))
    hostnames = [each.hostname for each in found]
    gone = recording.gone_nodes(cluster_id=row.cluster_id, present=hostnames, seen_at=now)
    counts = recording.record_looks(cluster_id=row.cluster_id, found=[*found, *gone])
    recording.forget_unknown(cluster_id=row.cluster_id, present=hostnames, seen_at=now)
    row.places = {"Node": nodes.resource_version} | slice_place
    row.digests = {_name(each): digest_of(each) for each in nodes.items}
    row.nodes, row.unknown_nodes = len(found), counts.unknown
    row.accelerators = sum(each.count or 0 for each in found)
    row.adoptable = _adoptable(client)
    row.without_slices = without
    row.listed_at = row.followed_at = now
    row.seconds = round(time.monotonic() - started, 3)
    row.error, row.failed_at = "", None
    row.save()


def _slices(client: ClusterClient) -> tuple[Sequence[Any], dict[str, str], str]:
    """ResourceSlices of the newest version served, the place of their watch, or why there are none.

    A cluster without them, or one that does not let us read them, still has resources and labels.
    """
    why = "The cluster does not serve ResourceSlices."
    for version in SLICE_VERSIONS:
        try:
            listing = client.list(version, "ResourceSlice")
        except NotFoundError:
            continue
        except ClusterRefusedError as error:
            why = str(error)[:300]
            break
        return listing.items, {f"ResourceSlice {version}": listing.resource_version}, ""
    return (), {}, why


def _follow(client: ClusterClient, row: Discovery, seconds: float) -> bool:
    """Hear what changed and read those nodes; False if the list has to be read again."""
    started = timezone.now()
    changes = _Changes(places=dict(row.places))
    for place, version in row.places.items():
        if not _hear(client, place, version, seconds, changes):
            return False
    # A Node whose object did not change keeps its name only; its slices make it worth a look.
    changed = {
        name: node
        for name, node in changes.nodes.items()
        if digest_of(node) != row.digests.get(name)
    }
    others = {name for name in changes.sliced if name not in changed and name in row.digests}
    if len(changed) + len(others) > MOST_CHANGED:
        return False
    for name in others:
        with suppress(NotFoundError):
            changed[name] = changes.nodes.get(name) or client.get(*NODE, name)
    found = _read_changed(client, row, changed, started)
    gone = [recording.gone(host, started) for host in changes.deleted.values()]
    recording.record_looks(cluster_id=row.cluster_id, found=[*found, *gone])
    if changes.lasted:
        but = [each.hostname for each in [*found, *gone]]
        recording.confirm(cluster_id=row.cluster_id, seen_at=started, but=but)
        row.followed_at = started
    row.places = changes.places
    row.digests |= {name: digest_of(node) for name, node in changed.items()}
    for name in changes.deleted:
        row.digests.pop(name, None)
    row.error, row.failed_at = "", None
    row.save()
    return True


def _hear(
    client: ClusterClient, place: str, version: str, seconds: float, changes: _Changes
) -> bool:
    """Follow one kind for a while; False above MOST_EVENTS."""
    kind, _space, api_version = place.partition(" ")
    began, heard = time.monotonic(), 0
    for event in client.watch(
        api_version or NODE[0], kind, resource_version=version, seconds=seconds
    ):
        heard += 1
        if heard > MOST_EVENTS:
            return False
        changes.places[place] = event.resource_version or changes.places[place]
        if event.type == "BOOKMARK":
            continue
        _note(kind, event.type, event.object, changes)
    took = time.monotonic() - began
    changes.lasted = changes.lasted and took >= 0.9 * max(1, int(seconds))
    return True


def _note(kind: str, event_type: str, item: dict[str, Any], changes: _Changes) -> None:
    name = _name(item)
    if kind != "Node":
        node = (item.get("spec") or {}).get("nodeName")
        if isinstance(node, str):
            changes.sliced.add(node)
    elif event_type == "DELETED":
        changes.nodes.pop(name, None)
        changes.deleted[name] = hostname_of(item)
    else:
        changes.deleted.pop(name, None)
        changes.nodes[name] = item


def _name(item: dict[str, Any]) -> str:
    return str(item["metadata"].get("name") or "")


def _read_changed(
    client: ClusterClient, row: Discovery, changed: dict[str, dict[str, Any]], now: datetime
) -> list[FoundNode]:
    """Looks at single nodes; the slices are asked for node by node."""
    slices: list[Any] = []
    versions = [place.partition(" ")[2] for place in row.places if place.startswith("Resource")]
    for version in versions:
        for name in changed:
            slices += client.list(version, "ResourceSlice", fields=f"spec.nodeName={name}").items
    return read_nodes(
        changed.values(), slices, seen_at=now, planned=_planned(row.cluster_id, changed.values())
    )


def _planned(cluster_id: UUID, nodes: Iterable[Any] | None = None) -> dict[str, str]:
    """Vendor by hostname in lower case of the nodes that are planned."""
    rows = Node.objects.filter(cluster_id=cluster_id).exclude(state=Node.State.RETIRED)
    if nodes is not None:
        rows = rows.filter(hostname__in=[hostname_of(node) for node in nodes])
    return {host.lower(): vendor for host, vendor in rows.values_list("hostname", "vendor")}


def _adoptable(client: ClusterClient) -> list[dict[str, Any]]:
    """Engines that run there already; kinds not there, or not ours to read, are left out."""
    found: list[adoptable.Adoptable | None] = []
    for pool in _items(client, POOL_VERSIONS, "InferencePool")[:MOST_POOLS]:
        selector = adoptable.selector_of(pool)
        namespace = pool["metadata"].get("namespace")
        pods = _items(client, ("v1",), "Pod", namespace, selector) if selector else []
        found.append(adoptable.read_pool(pool, pods))
    found += map(adoptable.read_service, _items(client, SERVICE_VERSIONS, "LLMInferenceService"))
    found += adoptable.read_slices(_items(client, ("discovery.k8s.io/v1",), "EndpointSlice"))
    return adoptable.shown([each for each in found if each is not None])


def _items(
    client: ClusterClient,
    versions: Sequence[str],
    kind: str,
    namespace: str | None = None,
    labels: str = "",
) -> list[dict[str, Any]]:
    for version in versions:
        try:
            return client.list(
                version, kind, namespace=namespace, labels=labels, most=MOST_SLICES
            ).items
        except NotFoundError:
            continue
        except (ClusterRefusedError, AnswerError) as error:
            logger.info("%s cannot be read: %s", kind, error)
            break
    return []
