"""Engines that somebody else runs: an address for an accelerator that is not ours to drive."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.serving import deployments
from controlplane.serving.errors import StaticEngineRefusedError
from controlplane.serving.models import Pool, Workload
from inventory.models import Accelerator, Cluster

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


@transaction.atomic
def register_static_engine(
    *, pool_id: UUID, accelerator_id: UUID, url: str, actor: "User"
) -> Workload:
    """Give an accelerator of a static cluster the address of the engine that runs there.

    A role comes by a change plan, as everywhere. Raises NotPermittedError or
    StaticEngineRefusedError.
    """
    permissions.require(actor, "serving.add_workload")
    accelerator = Accelerator.objects.select_related("node__cluster").get(pk=accelerator_id)
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.netloc or parts.path.strip("/") or parts.query:
        raise StaticEngineRefusedError(url=url, detail="an address is http://host:port.")
    if accelerator.node.cluster.kind != Cluster.Kind.STATIC:
        raise StaticEngineRefusedError(
            url=url,
            detail=f"{accelerator} is in a cluster of kind {accelerator.node.cluster.kind}.",
        )
    pool = Pool.objects.get(pk=pool_id)
    workload, _created = Workload.objects.update_or_create(
        accelerator=accelerator,
        defaults={
            "name": deployments.workload_name(accelerator.node.hostname, accelerator.slot),
            "pool": pool, "node": accelerator.node, "target": Cluster.Kind.STATIC.value,
            "desired": {"url": url.rstrip("/")},
        },
    )  # fmt: skip
    audit.record(actor=actor, action="workload.register", subject=workload, after={"url": url})
    return workload
