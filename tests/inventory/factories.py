"""Rows of the fleet with valid defaults."""

import itertools
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from inventory.discovery.base import FoundNode
from inventory.models import Accelerator, AcceleratorModel, Cluster, Node, NodeType, Site
from inventory.vendors.base import FoundAccelerator

_numbers = itertools.count(1)


def make_site(**overrides: Any) -> Site:
    number = next(_numbers)
    defaults = {
        "slug": f"kr-seo-{number}", "name": f"Seoul {number}", "country": "KR",
        "jurisdiction": "KR",
    }  # fmt: skip
    return Site.objects.create(**defaults | overrides)


def make_cluster(**overrides: Any) -> Cluster:
    number = next(_numbers)
    site = overrides.pop("site", None) or make_site()
    defaults = {"slug": f"seoul-{number}", "name": f"Seoul {number}", "site": site}
    return Cluster.objects.create(**defaults | overrides)


def make_model(**overrides: Any) -> AcceleratorModel:
    defaults = {"vendor": "amd", "name": "Instinct MI325X", "memory_bytes": 256 * 10**9}
    slug = overrides.pop("slug", "amd-mi325x")
    return AcceleratorModel.objects.get_or_create(slug=slug, defaults=defaults | overrides)[0]


def make_node_type(model: AcceleratorModel | None = None, accelerators: int = 2) -> NodeType:
    model = model or make_model()
    return NodeType.objects.get_or_create(
        slug=f"{model.slug}-x{accelerators}",
        defaults={
            "name": f"{accelerators} x {model.name}", "vendor": model.vendor,
            "accelerator_model": model, "accelerator_count": accelerators,
        },
    )[0]  # fmt: skip


def make_node(accelerators: int = 2, **overrides: Any) -> Node:
    """A node with accelerators in slots from 0, serials `<hostname>-<slot>`; never observed."""
    cluster = overrides.pop("cluster", None) or make_cluster()
    node_type = make_node_type(overrides.pop("model", None), max(accelerators, 1))
    defaults = {
        "cluster": cluster, "node_type": node_type, "vendor": node_type.vendor,
        "hostname": f"gpu-{next(_numbers)}",
    }  # fmt: skip
    node = Node.objects.create(**defaults | overrides)
    Accelerator.objects.bulk_create(
        Accelerator(
            node=node, model=node_type.accelerator_model, vendor=node.vendor, slot=slot,
            serial=f"{node.hostname}-{slot}",
        )
        for slot in range(accelerators)
    )  # fmt: skip
    return node


def found_node(node: Node, *, seen_at: datetime | None = None, **overrides: Any) -> FoundNode:
    """An observation in which everything is as it was planned."""
    defaults: dict[str, Any] = {
        "hostname": node.hostname,
        "vendor": node.vendor,
        "source": "agent",
        "seen_at": seen_at or timezone.now() - timedelta(seconds=next(_numbers) / 1000),
        "accelerators": tuple(
            FoundAccelerator(slot=device.slot, serial=device.serial, name="AMD Instinct MI325X")
            for device in node.accelerators.exclude(state="retired").order_by("slot")
        ),
    }
    return FoundNode(**defaults | overrides)
