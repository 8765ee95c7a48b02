"""Rows of serving with valid defaults: a site of two vendors, a model, a pool, plans."""

import itertools
from typing import Any

from controlplane.serving import services
from controlplane.serving.models import ChangePlan, Model, ModelArtefact, Pool
from controlplane.serving.plans import items_of
from controlplane.serving.services import PlanInput
from controlplane.serving.services.ledger import switch_roles
from controlplane.tenancy.models import Role as PersonRole
from controlplane.tenancy.models import User
from inventory.models import Accelerator, AcceleratorModel, Node
from tests.factories import make_olga, make_user
from tests.inventory.factories import make_cluster, make_node

_numbers = itertools.count(1)

FIGURES = {
    "nvidia-h100-nvl": ("nvidia", 94 * 10**9, 3.9e12, 835.0),
    "amd-mi325x": ("amd", 256 * 10**9, 6.0e12, 1307.0),
    "intel-gaudi3": ("intel-gaudi", 128 * 10**9, 3.7e12, 1835.0),
}


def make_accelerator_model(slug: str = "amd-mi325x", **overrides: Any) -> AcceleratorModel:
    vendor, memory, bandwidth, tflops = FIGURES[slug]
    defaults = {
        "vendor": vendor, "name": slug, "memory_bytes": memory,
        "bandwidth_bytes_per_second": int(bandwidth), "bf16_tflops": tflops,
    }  # fmt: skip
    return AcceleratorModel.objects.update_or_create(slug=slug, defaults=defaults | overrides)[0]


def make_fleet_node(
    slug: str = "amd-mi325x", *, accelerators: int = 2, kind: str = "local", **overrides: Any
) -> Node:
    cluster = overrides.pop("cluster", None) or make_cluster(kind=kind)
    return make_node(
        accelerators=accelerators, model=make_accelerator_model(slug), cluster=cluster, **overrides
    )


def accelerators_of(node: Node) -> list[Accelerator]:
    return list(node.accelerators.order_by("slot"))


def make_serving_model(**overrides: Any) -> Model:
    model = services.load_catalogue("granite-4.1-8b")[0]
    for name, value in overrides.items():
        setattr(model, name, value)
    model.save()
    return model


def make_pool(**overrides: Any) -> Pool:
    number = next(_numbers)
    defaults = {
        "slug": f"granite-{number}", "name": f"Granite {number}", "role_mode": "disaggregated",
        "ramp_seconds": 0.0,
    }  # fmt: skip
    model = overrides.pop("model", None) or make_serving_model()
    return services.create_pool(actor=None, model=model, **defaults | overrides)


def make_artefact(**overrides: Any) -> ModelArtefact:
    """Files of the usual model in a folder of nodes."""
    defaults = {
        "slug": f"granite-files-{next(_numbers)}", "kind": "node-path",
        "uri": "/srv/models/granite", "actor": make_olga(),
    }  # fmt: skip
    values = defaults | overrides
    values.setdefault("model", Model.objects.first() or make_serving_model())
    return services.create_artefact(**values)


def make_approver() -> User:
    return make_user(f"anders-{next(_numbers)}", PersonRole.APPROVER, PersonRole.READONLY)


def make_draft(pool: Pool, *nodes: Node, role: str = "both", **overrides: Any) -> ChangePlan:
    author = overrides.pop("author", None) or make_olga()
    wish = {
        "pool_id": pool.pk, "role": role, "reason": "test", "soak_seconds": 0.0,
        "node_ids": [node.pk for node in nodes], "floor_share": 0.0, "accelerators_per_wave": 8,
        "ready_seconds": 40.0, "drain_seconds": 5.0,
    }  # fmt: skip
    return services.draft_plan(PlanInput(**wish | overrides), actor=author)


def make_proposed(pool: Pool, *nodes: Node, **overrides: Any) -> ChangePlan:
    plan = make_draft(pool, *nodes, **overrides)
    return services.propose_plan(plan_id=plan.pk, actor=plan.author)


def make_approved(pool: Pool, *nodes: Node, **overrides: Any) -> ChangePlan:
    plan = make_proposed(pool, *nodes, **overrides)
    return services.approve_plan(plan_id=plan.pk, actor=make_approver())


def make_applying(pool: Pool, *nodes: Node, **overrides: Any) -> ChangePlan:
    plan = make_approved(pool, *nodes, **overrides)
    return services.apply_plan(plan_id=plan.pk, actor=plan.author)


def make_assigned(pool: Pool, node: Node, role: str = "both") -> ChangePlan:
    """An open assignment of a whole node, written by the ledger itself, without any engine."""
    plan = make_draft(pool, node, role=role)
    switch_roles(plan=plan, items=items_of(plan.diff), reason="test")
    services.cancel_plan(plan_id=plan.pk, actor=plan.author)
    return plan
