"""Engines that run in a cluster already become static engines of a pool; the cluster is not asked.

What is adopted is what the last discovery of the cluster saw. Each address takes one accelerator of
its node, the first that has no engine; the engine may use more of them, which nobody here can know.
Adopting again adds what is new and changes nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.serving import deployments
from controlplane.serving.errors import AdoptableUnknownError
from controlplane.serving.models import Pool, Workload
from inventory.models import Accelerator, Cluster, Discovery, Node

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

STATIC = Cluster.Kind.STATIC.value


@dataclass(frozen=True, slots=True)
class EngineSource:
    """Names the object of a cluster that speaks of the engines."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(slots=True)
class Adopted:
    """Workloads that stand for the engines, and addresses that could not be taken, with why."""

    workloads: list[Workload] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    """[{"url", "node", "why"}]; why: unknown-node, no-accelerator or other-pool."""


@transaction.atomic
def adopt_engines(
    *,
    pool_id: UUID,
    cluster_id: UUID,
    source: EngineSource,
    actor: "User",
    reason: str = "",
) -> Adopted:
    """Register the engines behind an object of a cluster with a pool.

    Roles come by a change plan, as everywhere, and it leaves the engines as they are. Raises
    NotPermittedError or AdoptableUnknownError.
    """
    pool = Pool.objects.get(pk=pool_id)
    permissions.require(actor, "serving.add_workload", pool)
    cluster = Cluster.objects.get(pk=cluster_id)
    item = _item(cluster, source)
    found = Adopted()
    free = _free(cluster, item["endpoints"])
    for endpoint in item["endpoints"]:
        _adopt(pool, endpoint, free, found)
    audit.record(
        actor=actor, action="pool.adopt", subject=pool, reason=reason,
        after={
            "object": str(source), "engines": len(found.workloads),
            "skipped": len(found.skipped),
        },
    )  # fmt: skip
    return found


def _item(cluster: Cluster, source: EngineSource) -> Mapping[str, Any]:
    seen = Discovery.objects.filter(cluster=cluster).values_list("adoptable", flat=True).first()
    for each in seen or ():
        if EngineSource(each["kind"], each["namespace"], each["name"]) == source:
            item: Mapping[str, Any] = each
            return item
    raise AdoptableUnknownError(cluster=cluster.slug, source=str(source))


def _free(
    cluster: Cluster, endpoints: Sequence[Mapping[str, Any]]
) -> dict[str, list[Accelerator] | None]:
    """Accelerators without an engine by hostname in lower case, locked; None: no such node."""
    hosts = {endpoint["node"].lower() for endpoint in endpoints}
    nodes = Node.objects.filter(cluster=cluster).exclude(state=Node.State.RETIRED)
    known = {node.hostname.lower(): node for node in nodes if node.hostname.lower() in hosts}
    locked = (
        Accelerator.objects.select_for_update(no_key=True, of=("self",))
        .filter(node__in=known.values(), workload__isnull=True)
        .exclude(state=Accelerator.State.RETIRED)
        .select_related("node__cluster", "model")
    )
    free: dict[str, list[Accelerator] | None] = {
        host: [] if host in known else None for host in hosts
    }
    for accelerator in sorted(locked.order_by("pk"), key=lambda row: row.slot):
        rows = free[accelerator.node.hostname.lower()]
        if rows is not None:
            rows.append(accelerator)
    return free


def _adopt(
    pool: Pool,
    endpoint: Mapping[str, Any],
    free: dict[str, list[Accelerator] | None],
    found: Adopted,
) -> None:
    url, host = endpoint["url"], endpoint["node"]
    existing = Workload.objects.filter(target=STATIC, desired__url=url).first()
    if existing is not None:
        if existing.pool_id == pool.pk:
            found.workloads.append(existing)
        else:
            found.skipped.append({"url": url, "node": host, "why": "other-pool"})
        return
    rows = free[host.lower()]
    if not rows:
        why = "unknown-node" if rows is None else "no-accelerator"
        found.skipped.append({"url": url, "node": host, "why": why})
        return
    accelerator = rows.pop(0)
    found.workloads.append(
        Workload.objects.create(
            name=deployments.engine_name(accelerator),
            pool=pool,
            node=accelerator.node,
            accelerator=accelerator,
            target=STATIC,
            desired={"url": url},
        )
    )
