"""Rows of a small fleet with valid defaults, for telemetry, metering and finance."""

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from controlplane.telemetry.models import EngineSample, ScrapeTarget
from inventory.models import Accelerator, AcceleratorModel, Cluster, Node, NodeType, Site

_numbers = itertools.count(1)
HOUR = datetime(2026, 11, 30, 10, tzinfo=UTC)


def make_site(**overrides: Any) -> Site:
    number = next(_numbers)
    defaults = {
        "slug": f"site-{number}",
        "name": f"Site {number}",
        "country": "KR",
        "jurisdiction": "KR",
        "pue": Decimal("1.300"),
        "tariff_per_kwh": Decimal("0.100000"),
        "currency": "USD",
    }
    return Site.objects.create(**defaults | overrides)


def make_cluster(**overrides: Any) -> Cluster:
    number = next(_numbers)
    site = overrides.pop("site", None) or make_site()
    return Cluster.objects.create(
        **{"site": site, "slug": f"cluster-{number}", "name": f"Cluster {number}"} | overrides
    )


def make_accelerator_model(**overrides: Any) -> AcceleratorModel:
    number = next(_numbers)
    defaults = {"slug": f"amd-{number}", "vendor": "amd", "name": "MI325X", "tdp_watts": 1000.0}
    return AcceleratorModel.objects.create(**defaults | overrides)


def make_node(*, accelerators: int = 2, **overrides: Any) -> Node:
    """A ready node with its accelerators in slots from 0."""
    number = next(_numbers)
    cluster = overrides.pop("cluster", None) or make_cluster()
    model = overrides.pop("model", None) or make_accelerator_model()
    node_type = NodeType.objects.create(
        slug=f"type-{number}",
        name="Type",
        vendor=model.vendor,
        accelerator_model=model,
        accelerator_count=max(accelerators, 1),
    )
    defaults = {"hostname": f"gpu-{number}", "vendor": model.vendor, "node_type": node_type}
    node = Node.objects.create(**{"cluster": cluster} | defaults | overrides)
    Accelerator.objects.bulk_create(
        Accelerator(node=node, model=model, vendor=model.vendor, slot=slot)
        for slot in range(accelerators)
    )
    return node


def make_target(*, created_at: datetime | None = None, **overrides: Any) -> ScrapeTarget:
    """An active engine on the first accelerator of its node, known since before HOUR."""
    number = next(_numbers)
    node = overrides.pop("node", None) or make_node()
    accelerators = overrides.pop("accelerators", None)
    defaults = {
        "url": f"http://127.0.0.1:9/{number}/metrics",
        "engine": "vllm",
        "pool": "granite",
        "role": "both",
        "endpoint": f"engine-{number}",
        "instance": f"engine-{number}-1",
        "source": "simulated",
    }
    target = ScrapeTarget.objects.create(**{"node": node} | defaults | overrides)
    target.accelerators.set(node.accelerators.all()[:1] if accelerators is None else accelerators)
    ScrapeTarget.objects.filter(pk=target.pk).update(
        created_at=created_at or HOUR - timedelta(hours=2)
    )
    target.refresh_from_db()
    return target


def make_samples(target: ScrapeTarget, count: int, **overrides: Any) -> list[EngineSample]:
    """Samples each 5 s from HOUR on; each sample stands for 5 s."""
    start = overrides.pop("start", HOUR)
    defaults = {"seconds": 5.0, "running": 1, "waiting": 0, "kv_usage": 0.5}
    return EngineSample.objects.bulk_create(
        EngineSample(
            target=target, at=start + timedelta(seconds=5 * number), **defaults | overrides
        )
        for number in range(count)
    )
