"""What people decide about a plan: approve, reject, apply, pause, resume, cancel, roll back."""

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from controlplane.audit import services as audit
from controlplane.common import jobs, permissions
from controlplane.operations import outbox
from controlplane.operations import services as operations
from controlplane.serving import plans, selectors
from controlplane.serving.errors import OwnPlanError, PoolBusyError, RollbackTooLateError
from controlplane.serving.models import Approval, ChangePlan, Pool, Wave
from controlplane.serving.services.drafting import locked_plan, require_fresh, require_state

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

State = ChangePlan.State
ROLLBACK_WITHIN = timedelta(days=7)


@transaction.atomic
def approve_plan(*, plan_id: UUID, actor: "User", comment: str = "") -> ChangePlan:
    """Consent to a plan as it is; of several approvers at once one approves.

    Raises NotPermittedError, OwnPlanError, PlanStateError, PlanExpiredError, PlanStaleError or
    PlanBlockedError.
    """
    plan = locked_plan(plan_id)
    if plan.author_id == actor.pk:
        raise OwnPlanError(plan=plan.number)
    permissions.require(actor, "serving.approve_changeplan", plan)
    require_state(plan, State.PROPOSED)
    require_fresh(plan)
    Approval.objects.create(
        plan=plan, approver=actor, fingerprint=plan.fingerprint, comment=comment
    )
    plan.state = State.APPROVED
    plan.save(update_fields=["state", "updated_at"])
    audit.record(actor=actor, action="changeplan.approve", subject=plan, reason=comment)
    outbox.emit("consort.changeplan.approved", subject=plan)
    return plan


@transaction.atomic
def reject_plan(*, plan_id: UUID, actor: "User", reason: str) -> ChangePlan:
    """Say no to a proposed plan; it is cancelled with the reason.

    Raises NotPermittedError, OwnPlanError or PlanStateError.
    """
    plan = locked_plan(plan_id)
    if plan.author_id == actor.pk:
        raise OwnPlanError(plan=plan.number)
    permissions.require(actor, "serving.reject_changeplan", plan)
    require_state(plan, State.PROPOSED)
    _end_before_start(plan, f"Rejected: {reason}")
    audit.record(actor=actor, action="changeplan.reject", subject=plan, reason=reason)
    outbox.emit("consort.changeplan.rejected", subject=plan)
    return plan


@transaction.atomic
def apply_plan(*, plan_id: UUID, actor: "User") -> ChangePlan:
    """Start the waves of an approved plan; its operation shows how far it is.

    Raises NotPermittedError, PlanStateError, PlanExpiredError, PlanStaleError, PlanBlockedError or
    PoolBusyError.
    """
    plan = locked_plan(plan_id)
    permissions.require(actor, "serving.apply_changeplan", plan)
    require_state(plan, State.APPROVED)
    _lock_free_pool(plan)
    require_fresh(plan)
    plan.operation = operations.start(
        kind="serving.apply-plan",
        subject=plan,
        task="serving.tasks.follow_plan",
        actor=actor,
        steps=[f"wave {wave.position}" for wave in plan.waves.all()],
    )
    plan.state, plan.applied_at = State.APPLYING, timezone.now()
    plan.save(update_fields=["state", "applied_at", "operation", "updated_at"])
    audit.record(actor=actor, action="changeplan.apply", subject=plan, reason=plan.reason)
    outbox.emit("consort.changeplan.applying", subject=plan)
    return plan


@transaction.atomic
def pause_plan(*, plan_id: UUID, actor: "User", reason: str = "") -> ChangePlan:
    """Begin no other wave; the current one goes on to its end. A second call changes nothing."""
    plan = locked_plan(plan_id)
    permissions.require(actor, "serving.pause_changeplan", plan)
    require_state(plan, State.APPLYING)
    if plan.paused_at is None:
        plan.paused_at = timezone.now()
        plan.save(update_fields=["paused_at", "updated_at"])
        audit.record(actor=actor, action="changeplan.pause", subject=plan, reason=reason)
    return plan


@transaction.atomic
def resume_plan(*, plan_id: UUID, actor: "User", reason: str = "") -> ChangePlan:
    """Go on with the waves. A second call changes nothing."""
    plan = locked_plan(plan_id)
    permissions.require(actor, "serving.pause_changeplan", plan)
    require_state(plan, State.APPLYING)
    if plan.paused_at is not None:
        plan.paused_at = None
        plan.save(update_fields=["paused_at", "updated_at"])
        audit.record(actor=actor, action="changeplan.resume", subject=plan, reason=reason)
        jobs.after_commit("serving.tasks.reconcile_pool", str(plan.pool_id))
    return plan


@transaction.atomic
def cancel_plan(*, plan_id: UUID, actor: "User", reason: str = "") -> ChangePlan:
    """Drop a plan that was not started, or the waves that have not begun.

    The wave that runs goes on to its end, because half a wave is worse than either end.
    """
    plan = locked_plan(plan_id)
    permissions.require(actor, "serving.cancel_changeplan", plan)
    require_state(plan, State.DRAFT, State.PROPOSED, State.APPROVED, State.APPLYING)
    if plan.state != State.APPLYING:
        _end_before_start(plan, f"Cancelled: {reason}" if reason else "Cancelled.")
    elif not plan.cancelling:
        plan.cancelling = True
        plan.save(update_fields=["cancelling", "updated_at"])
        jobs.after_commit("serving.tasks.reconcile_pool", str(plan.pool_id))
    audit.record(actor=actor, action="changeplan.cancel", subject=plan, reason=reason)
    return plan


@transaction.atomic
def rollback_plan(*, plan_id: UUID, actor: "User", reason: str) -> ChangePlan:
    """Give the accelerators their roles before, newest wave first.

    The way back was approved with the plan. It is open while the plan is applied and for seven
    days afterwards, as long as nobody changed the roles since.
    Raises NotPermittedError, PlanStateError, PoolBusyError or RollbackTooLateError.
    """
    plan = locked_plan(plan_id)
    permissions.require(actor, "serving.rollback_changeplan", plan)
    require_state(plan, State.APPLYING, State.SUCCEEDED, State.FAILED)
    if plan.rolling_back and plan.state == State.APPLYING:
        return plan
    if plan.state != State.APPLYING:
        _lock_free_pool(plan)
        _require_roles_as_left(plan)
        plan.operation = operations.start(
            kind="serving.roll-back-plan",
            subject=plan,
            task="serving.tasks.follow_plan",
            actor=actor,
            steps=[f"wave {wave.position}" for wave in plan.waves.order_by("-position")],
        )
    begin_rollback(plan, why=f"Rolled back by hand: {reason}")
    plan.save(update_fields=["operation", "updated_at"])
    audit.record(actor=actor, action="changeplan.rollback", subject=plan, reason=reason)
    jobs.after_commit("serving.tasks.reconcile_pool", str(plan.pool_id))
    return plan


def begin_rollback(plan: ChangePlan, *, why: str) -> None:
    """Turn a locked plan around: waves not begun are skipped, the others go backwards."""
    plan.state, plan.rolling_back, plan.outcome = State.APPLYING, True, why[:2000]
    plan.ended_at = plan.paused_at = None
    plan.save(
        update_fields=["state", "rolling_back", "outcome", "ended_at", "paused_at", "updated_at"]
    )
    begun = [Wave.State.RUNNING, Wave.State.SUCCEEDED, Wave.State.FAILED]
    plan.waves.filter(state=Wave.State.PENDING).update(
        state=Wave.State.SKIPPED, updated_at=timezone.now()
    )
    plan.waves.filter(state__in=begun).update(
        backwards=True,
        state=Wave.State.PENDING,
        step=Wave.Step.DRAIN,
        step_started_at=None,
        ended_at=None,
        updated_at=timezone.now(),
    )
    outbox.emit("consort.changeplan.rolling-back", subject=plan, data={"why": why})


def _lock_free_pool(plan: ChangePlan) -> None:
    """Lock the pool, so that of two plans at once one is applied. Raises PoolBusyError."""
    Pool.objects.select_for_update(no_key=True).get(pk=plan.pool_id)
    other = ChangePlan.objects.filter(pool=plan.pool_id, state=State.APPLYING).exclude(pk=plan.pk)
    if found := other.first():
        raise PoolBusyError(pool=plan.pool.name, other=found.number)


def _require_roles_as_left(plan: ChangePlan) -> None:
    if plan.ended_at is None or plan.ended_at < timezone.now() - ROLLBACK_WITHIN:
        raise RollbackTooLateError(plan=plan.number, detail=_("it ended more than seven days ago."))
    items = plans.items_of(plan.diff)
    ids = [UUID(item.accelerator) for item in items]
    found = {
        str(row.accelerator_id): row.assignment for row in selectors.open_roles(accelerator_ids=ids)
    }
    for item in items:
        assignment = found.get(item.accelerator)
        role = assignment.role if assignment else ""
        foreign = assignment is not None and assignment.pool_id != plan.pool_id
        if foreign or role not in {item.to_role, item.from_role}:
            detail = _("{engine} has another role since.").format(engine=item.workload)
            raise RollbackTooLateError(plan=plan.number, detail=detail)


def _end_before_start(plan: ChangePlan, outcome: str) -> None:
    plan.state, plan.ended_at, plan.outcome = State.CANCELLED, timezone.now(), outcome[:2000]
    plan.save(update_fields=["state", "ended_at", "outcome", "updated_at"])
    plan.waves.update(state=Wave.State.SKIPPED, updated_at=timezone.now())
