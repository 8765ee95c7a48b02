"""What the simulated node agents of the demo report; needs Django."""

from collections.abc import Iterator

from django.utils import timezone

from inventory.discovery.base import FoundNode
from inventory.facts import loading
from inventory.models import Accelerator, Node
from inventory.services.observing import record_observation
from inventory.vendors.base import FoundAccelerator

SILENT = frozenset({"npu-kr-41"})
TOOL = "simulated"


def report() -> int:
    """Record one observation of every node that is not silent; returns how many."""
    nodes = Node.objects.exclude(state=Node.State.RETIRED).exclude(hostname__in=SILENT)
    names = {model.slug: (model.reported_names or ("",))[0] for model in loading.accelerators()}
    for node in nodes:
        found = FoundNode(
            hostname=node.hostname,
            vendor=node.vendor,
            source="agent",
            seen_at=timezone.now(),
            accelerators=tuple(_accelerators(node, names)),
            tool=TOOL,
        )
        record_observation(cluster_id=node.cluster_id, found=found)
    return len(nodes)


def _accelerators(node: Node, names: dict[str, str]) -> Iterator[FoundAccelerator]:
    devices = Accelerator.objects.filter(node=node).exclude(state=Accelerator.State.RETIRED)
    for device in devices.select_related("model").order_by("slot"):
        memory = device.model.memory_bytes
        yield FoundAccelerator(
            slot=device.slot,
            serial=device.serial,
            name=names.get(device.model.slug, ""),
            memory_total_mib=memory // 2**20 if memory else None,
        )
