"""The role ledger: periods are opened and ended in one transaction, never edited.

An assignment covers accelerators of one node. When only some of them change, the assignment ends
and the rest goes on in another one of the same role, so that every period is exact for all of its
accelerators.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.operations import outbox
from controlplane.serving.errors import LedgerConflictError
from controlplane.serving.models import (
    AssignedAccelerator,
    ChangePlan,
    Pool,
    RoleAssignment,
    Workload,
)
from controlplane.serving.plans import PlanItem
from inventory.models import Accelerator, Node


@transaction.atomic
def switch_roles(*, plan: ChangePlan, items: Sequence[PlanItem], reason: str) -> int:
    """Give each accelerator its role after the change; returns how many changed.

    A second call changes nothing. Raises LedgerConflictError if the ledger has neither the role
    before nor the role after.
    """
    _lock([item.accelerator for item in items])
    now = timezone.now()
    due = _not_yet_switched(plan, items)
    if not due:
        return 0
    _end_open(plan, due, at=now, reason=reason)
    _open(plan, due, at=now, reason=reason)
    audit.record(
        actor=None, action="role.switch", subject=plan, reason=reason,
        after={item.workload: item.to_role or "released" for item in due},
    )  # fmt: skip
    outbox.emit(
        "consort.role.switched", subject=plan.pool,
        data={"plan": plan.number, "accelerators": [item.accelerator for item in due]},
    )  # fmt: skip
    return len(due)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAssignment:
    """A period that is over."""

    pool: Pool
    node: Node
    accelerators: Sequence[Accelerator]
    role: str
    valid_from: datetime
    valid_to: datetime
    """The end does not belong to the period."""
    reason: str
    simulated: bool
    plan: ChangePlan | None = None


@transaction.atomic
def record_past_assignment(past: PastAssignment) -> RoleAssignment:
    """Write a period that is over, for history that comes from elsewhere.

    Raises LedgerConflictError if it overlaps another period of one of the accelerators.
    """
    _lock([accelerator.pk for accelerator in past.accelerators])
    taken = (
        RoleAssignment.objects.overlapping(past.valid_from, past.valid_to)
        .filter(members__accelerator__in=past.accelerators)
        .first()
    )
    if taken is not None:
        raise LedgerConflictError(
            accelerator=past.node.hostname, found=taken.role, expected="free in that period"
        )
    assignment = RoleAssignment.objects.create(
        pool=past.pool,
        node=past.node,
        role=past.role,
        valid_from=past.valid_from,
        valid_to=past.valid_to,
        reason=past.reason,
        simulated=past.simulated,
        change_plan=past.plan,
    )
    AssignedAccelerator.objects.bulk_create(
        AssignedAccelerator(assignment=assignment, accelerator=accelerator, open=False)
        for accelerator in past.accelerators
    )
    return assignment


def _lock(accelerator_ids: Sequence[UUID | str]) -> None:
    """Lock accelerators in one order over all callers, so that two cannot wait for each other."""
    rows = Accelerator.objects.select_for_update(no_key=True).filter(pk__in=accelerator_ids)
    list(rows.order_by("pk").values_list("pk"))


def _not_yet_switched(plan: ChangePlan, items: Sequence[PlanItem]) -> list[PlanItem]:
    found = {
        str(row.accelerator_id): row.assignment
        for row in AssignedAccelerator.objects.filter(
            open=True, accelerator__in=[item.accelerator for item in items]
        ).select_related("assignment")
    }
    due = []
    for item in items:
        assignment = found.get(item.accelerator)
        role = assignment.role if assignment else ""
        ours = assignment is None or assignment.pool_id == plan.pool_id
        if ours and role == item.to_role:
            continue
        if not ours or role != item.from_role:
            raise LedgerConflictError(
                accelerator=item.workload,
                found=role or "without a role",
                expected=item.from_role or "without a role",
            )
        due.append(item)
    return due


def _end_open(plan: ChangePlan, items: Sequence[PlanItem], *, at: datetime, reason: str) -> None:
    leaving = {UUID(item.accelerator) for item in items}
    touched = (
        RoleAssignment.objects.select_for_update(no_key=True, of=("self",))
        .filter(
            pk__in=AssignedAccelerator.objects.filter(open=True, accelerator__in=leaving).values(
                "assignment"
            )
        )
        .order_by("pk")
    )
    for assignment in touched:
        staying = [
            row.accelerator_id
            for row in assignment.members.filter(open=True)
            if row.accelerator_id not in leaving
        ]
        assignment.members.filter(open=True).update(open=False, updated_at=at)
        assignment.valid_to = at
        assignment.save(update_fields=["valid_to", "updated_at"])
        if staying:
            rest = RoleAssignment.objects.create(
                pool_id=assignment.pool_id, node_id=assignment.node_id, role=assignment.role,
                valid_from=at, change_plan=plan, reason=reason,
            )  # fmt: skip
            AssignedAccelerator.objects.bulk_create(
                AssignedAccelerator(assignment=rest, accelerator_id=identifier)
                for identifier in staying
            )
            Workload.objects.filter(accelerator__in=staying).update(assignment=rest, updated_at=at)


def _open(plan: ChangePlan, items: Sequence[PlanItem], *, at: datetime, reason: str) -> None:
    by_node: dict[tuple[str, str], list[PlanItem]] = defaultdict(list)
    for item in items:
        if item.to_role:
            by_node[item.node, item.to_role].append(item)
    for (node, role), group in sorted(by_node.items()):
        assignment = RoleAssignment.objects.create(
            pool=plan.pool, node_id=node, role=role, valid_from=at, change_plan=plan, reason=reason
        )
        AssignedAccelerator.objects.bulk_create(
            AssignedAccelerator(assignment=assignment, accelerator_id=item.accelerator)
            for item in group
        )
