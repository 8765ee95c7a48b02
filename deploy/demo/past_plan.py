"""The change of the demo's past that rolled itself back, with the number of its guard."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Max

from controlplane.serving.deployments import workload_name
from controlplane.serving.models import Approval, ChangePlan, Pool, Wave
from controlplane.serving.plans import PlanItem
from controlplane.tenancy.models import Role, User
from inventory.models import Accelerator

REASON = "Try decode on half of the Gaudi 3 node to free the MI325X for long outputs."
GUARD_SECONDS = 1.5
SEEN_AT_LEAST, SEEN_AT_MOST = 2.5, 5.0
REQUESTS = 1_904


def write(
    *,
    pool: Pool,
    accelerators: Sequence[Accelerator],
    changed: Sequence[int],
    at: datetime,
    lasted: timedelta,
) -> ChangePlan:
    """Write the plan: its first wave passed a guard, so it went back and the second never began."""
    waves = [
        [_item(row) for row in accelerators if (row.slot in changed) is first]
        for first in (True, False)
    ]
    author, approver = _people()
    plan = ChangePlan.objects.create(
        serial=1 + (ChangePlan.objects.aggregate(last=Max("serial"))["last"] or 0),
        pool=pool,
        role="decode",
        state=ChangePlan.State.ROLLED_BACK,
        author=author,
        reason=REASON,
        diff=[item.as_json() for wave in waves for item in wave],
        guards={
            "ttft_p95_seconds": GUARD_SECONDS, "max_error_share": 0.05, "min_requests": 20,
            "max_starts": 4,
        },
        accelerators_per_wave=len(changed),
        floor_share=0.5,
        soak_seconds=600.0,
        fingerprint=hashlib.sha256(REASON.encode()).hexdigest(),
        expires_at=at + timedelta(hours=24),
        proposed_at=at - timedelta(minutes=50),
        applied_at=at - timedelta(minutes=4),
        ended_at=at + lasted,
        rolling_back=True,
        outcome=(
            f"Wave 1: TTFT p95 is at least {SEEN_AT_LEAST:g} s; the guard is {GUARD_SECONDS:g} s."
            " Rolled back."
        ),
        simulated=True,
    )  # fmt: skip
    ChangePlan.objects.filter(pk=plan.pk).update(created_at=at - timedelta(hours=1))
    approval = Approval.objects.create(
        plan=plan, approver=approver, fingerprint=plan.fingerprint, comment="One node, half of it."
    )
    Approval.objects.filter(pk=approval.pk).update(created_at=at - timedelta(minutes=20))
    _waves(plan, waves, at=at, lasted=lasted)
    return plan


def _waves(
    plan: ChangePlan, waves: Sequence[Sequence[PlanItem]], *, at: datetime, lasted: timedelta
) -> None:
    tripped, skipped = waves
    Wave.objects.create(
        plan=plan,
        position=1,
        state=Wave.State.ROLLED_BACK,
        step=Wave.Step.DONE,
        backwards=True,
        items=[item.as_json() for item in tripped],
        detail={
            "after": {
                "requests": REQUESTS,
                "failed_share": 0.0,
                "ttft_p95_at_least": SEEN_AT_LEAST,
                "ttft_p95_at_most": SEEN_AT_MOST,
            },
            "waits_for": "",
        },
        step_started_at=at + lasted,
        started_at=at - timedelta(minutes=4),
        ended_at=at + lasted,
    )
    Wave.objects.create(
        plan=plan,
        position=2,
        state=Wave.State.SKIPPED,
        items=[item.as_json() for item in skipped],
    )


def _item(accelerator: Accelerator) -> PlanItem:
    node = accelerator.node
    return PlanItem(
        accelerator=str(accelerator.pk),
        node=str(node.pk),
        hostname=node.hostname,
        slot=accelerator.slot,
        vendor=accelerator.vendor,
        accelerator_model=accelerator.model.slug,
        target=node.cluster.kind,
        workload=workload_name(node.hostname, accelerator.slot),
        from_role="both",
        to_role="decode",
    )


def _people() -> tuple[User, User]:
    """Somebody who may propose and somebody else who may approve; LookupError without them."""
    assigners = User.objects.filter(roles__contains=[Role.ROLE_ASSIGNER])
    author = assigners.order_by("created_at").first()
    approvers = User.objects.filter(roles__contains=[Role.APPROVER]).order_by("created_at")
    approver = next((person for person in approvers if person != author), None)
    if author is None or approver is None:
        raise LookupError("The history needs a role assigner and another person who approves.")
    return author, approver
