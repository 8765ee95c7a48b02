"""Assets, pools, assignments and engines with valid defaults."""

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from controlplane.finance import services
from controlplane.finance.models import AssetCost
from controlplane.serving.models import (
    AssignedAccelerator,
    Endpoint,
    Model,
    Pool,
    RoleAssignment,
    Workload,
)
from controlplane.telemetry.models import EngineHour
from inventory.models import Accelerator, Node

_numbers = itertools.count(1)
HOUR = datetime(2026, 11, 30, 10, tzinfo=UTC)
NOW = HOUR + timedelta(hours=1)


def make_figures(**overrides: Any) -> services.AssetFigures:
    """A node of 72,000 USD over 72 months: 1,000 a month, in service since January 2026."""
    defaults = {
        "currency": "USD",
        "capex": Decimal(72_000),
        "life_months": 72,
        "annual_rate": Decimal("0.06"),
        "in_service_at": datetime(2026, 1, 1, tzinfo=UTC),
        "host_watts": Decimal(600),
    }
    return services.AssetFigures(**defaults | overrides)


def make_asset_cost(node: Node, **overrides: Any) -> AssetCost:
    return services.record_asset_cost(
        node_id=node.pk, figures=make_figures(**overrides), actor=None
    )


def make_model(**overrides: Any) -> Model:
    number = next(_numbers)
    defaults = {
        "slug": f"granite-{number}",
        "name": "Granite",
        "max_model_len": 131_072,
        "layers": 40,
        "hidden": 4096,
        "kv_bytes_per_token": 163_840,
        "weight_bytes": 17_600_000_000,
        "flops_per_token": 1.7e10,
        "attention_flops_per_token_per_context_token": 6.5e5,
    }
    return Model.objects.create(**defaults | overrides)


def make_pool(**overrides: Any) -> Pool:
    model = overrides.pop("model", None) or make_model()
    defaults = {"slug": "granite", "name": "Granite", "role_mode": "disaggregated"}
    return Pool.objects.create(**{"model": model} | defaults | overrides)


def assign(
    pool: Pool, accelerators: list[Accelerator], role: str, **overrides: Any
) -> RoleAssignment:
    defaults = {"valid_from": HOUR - timedelta(days=1), "reason": "first"}
    assignment = RoleAssignment.objects.create(
        **{"pool": pool, "node": accelerators[0].node, "role": role} | defaults | overrides
    )
    AssignedAccelerator.objects.bulk_create(
        AssignedAccelerator(
            assignment=assignment, accelerator=each, open=assignment.valid_to is None
        )
        for each in accelerators
    )
    return assignment


def make_endpoint(pool: Pool, accelerator: Accelerator, **overrides: Any) -> Endpoint:
    number = next(_numbers)
    workload, _ = Workload.objects.get_or_create(
        accelerator=accelerator,
        defaults={
            "name": f"workload-{number}",
            "pool": pool,
            "node": accelerator.node,
            "target": "local",
        },
    )
    defaults = {
        "url": f"http://127.0.0.1:{9000 + number}",
        "instance": f"workload-{number}-a",
        "role": "both",
        "engine": "vllm",
        "state": "ready",
        "ready_at": HOUR - timedelta(days=1),
    }
    return Endpoint.objects.create(
        **{"workload": workload, "pool": pool, "node": accelerator.node} | defaults | overrides
    )


def make_engine_hour(node: Node, **overrides: Any) -> EngineHour:
    number = next(_numbers)
    defaults = {
        "endpoint": f"engine-{number}",
        "instance": f"engine-{number}-1",
        "pool": "granite",
        "role": "decode",
        "accelerator_count": 1,
        "hour": HOUR,
        "samples": 720,
        "expected_samples": 720,
        "observed_seconds": 3600.0,
        "source": "simulated",
    }
    return EngineHour.objects.create(**{"node": node} | defaults | overrides)
