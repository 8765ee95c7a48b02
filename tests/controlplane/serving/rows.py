"""Rows of engines without any process, for reads."""

from typing import Any

from controlplane.serving import deployments
from controlplane.serving.models import Endpoint, Pool, Workload
from inventory.models import Accelerator
from tests.controlplane.serving.factories import accelerators_of, make_fleet_node, make_pool


def make_workload(accelerator: Accelerator | None = None, **overrides: Any) -> Workload:
    accelerator = accelerator or accelerators_of(make_fleet_node(accelerators=1))[0]
    pool = overrides.pop("pool", None) or make_pool()
    values = {
        "name": deployments.workload_name(accelerator.node.hostname, accelerator.slot),
        "node": accelerator.node, "target": "local", "role": "both", "desired_state": "running",
        "desired": deployments.desired_spec(pool, accelerator, role="both"), "generation": 1,
    }  # fmt: skip
    return Workload.objects.create(pool=pool, accelerator=accelerator, **values | overrides)


def make_endpoint(pool: Pool | None = None, **overrides: Any) -> Endpoint:
    workload = overrides.pop("workload", None) or make_workload(pool=pool)
    values = {
        "pool": workload.pool, "node": workload.node, "url": "http://127.0.0.1:9000",
        "instance": "abc", "role": "both", "engine": "simulated", "state": "ready",
        "kv_contract": workload.desired["kv_contract"],
    }  # fmt: skip
    return Endpoint.objects.create(workload=workload, **values | overrides)
