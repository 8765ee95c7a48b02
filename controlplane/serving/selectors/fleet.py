"""What is true of a pool's accelerators, for plans and loops."""

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.serving.models import AssignedAccelerator, Pool
from inventory.models import Accelerator


def accelerators_of(
    *, node_ids: Collection[UUID] = (), accelerator_ids: Collection[UUID] = ()
) -> QuerySet[Accelerator]:
    """Accelerators of whole nodes and single ones, by host and slot.

    Retired ones are left out unless they still have a role, which can then be released.
    """
    in_use = ~Q(state=Accelerator.State.RETIRED) | Exists(
        AssignedAccelerator.objects.filter(accelerator=OuterRef("pk"), open=True)
    )
    return (
        Accelerator.objects.filter(Q(node__in=node_ids) | Q(pk__in=accelerator_ids))
        .filter(in_use)
        .select_related("model", "node__cluster__site")
        .order_by("node__hostname", "slot", "pk")
    )


def open_roles(
    *, pool: Pool | None = None, accelerator_ids: Collection[UUID] | None = None
) -> QuerySet[AssignedAccelerator]:
    """Open memberships with their assignment, of a pool or of some accelerators."""
    rows = AssignedAccelerator.objects.filter(open=True).select_related("assignment__pool")
    if pool is not None:
        rows = rows.filter(assignment__pool=pool)
    if accelerator_ids is not None:
        rows = rows.filter(accelerator__in=accelerator_ids)
    return rows.order_by("accelerator")


def serving_count(pool: Pool) -> int:
    """Accelerators with an open role in the pool."""
    return open_roles(pool=pool).count()


def pool_state(pool: Pool, accelerator_ids: Iterable[str]) -> dict[str, Any]:
    """The state a plan is made for: settings of the pool, its ledger, and what was selected.

    Two calls give equal values exactly when a plan made at the first still fits at the second.
    """
    wanted = sorted({str(identifier) for identifier in accelerator_ids})
    selected = open_roles(accelerator_ids=[UUID(identifier) for identifier in wanted])
    return {
        "pool": str(pool.pk),
        "state": pool.state,
        "role_mode": pool.role_mode,
        "model": str(pool.model_id),
        "artefact": str(pool.artefact_id or ""),
        "engine": pool.engine,
        "engine_arguments": pool.engine_arguments,
        "containers": pool.containers,
        "ledger": {
            str(row.accelerator_id): [row.assignment.role, str(row.assignment_id)]
            for row in open_roles(pool=pool)
        },
        "selected": {
            str(row.accelerator_id): [row.assignment.pool_id, str(row.assignment_id)]
            for row in selected
        },
        "hardware": {
            str(identifier): [accelerator_state, node_state, str(model)]
            for identifier, accelerator_state, node_state, model in Accelerator.objects.filter(
                pk__in=wanted
            ).values_list("pk", "state", "node__state", "model")
        },
    }
