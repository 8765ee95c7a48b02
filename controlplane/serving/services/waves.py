"""A plan that is applied: which wave is next, when it begins, how it turns around and ends."""

from collections.abc import Mapping
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.operations import outbox
from controlplane.serving.models import ChangePlan, Endpoint, Pool, Wave
from controlplane.serving.services import routers
from controlplane.serving.services.decisions import begin_rollback
from controlplane.serving.services.steps import STEPS, Run, TrippedError, first_step, tell
from controlplane.serving.targets.base import SeenEngine

State = Endpoint.State
Step = Wave.Step


def applying_plan(pool: Pool) -> ChangePlan | None:
    """The plan that is being applied in a pool, with its pool."""
    rows = ChangePlan.objects.filter(pool=pool, state=ChangePlan.State.APPLYING)
    return rows.select_related("pool__model", "pool__artefact", "operation").first()


def advance(plan: ChangePlan, seen: Mapping[UUID, SeenEngine]) -> bool:
    """Take the plan one step on, if it can; True if something moved."""
    wave = _current_wave(plan)
    if wave is None:
        _finish_plan(plan)
        return True
    run = Run(plan=plan, wave=wave, seen=seen, now=timezone.now())
    if wave.state == Wave.State.PENDING:
        return _begin(run)
    try:
        return STEPS[wave.step](run)
    except TrippedError as error:
        _trip(run, str(error))
        return True


def _current_wave(plan: ChangePlan) -> Wave | None:
    order = "-position" if plan.rolling_back else "position"
    open_states = [Wave.State.RUNNING, Wave.State.PENDING]
    waves = list(plan.waves.filter(state__in=open_states).order_by(order))
    running = [wave for wave in waves if wave.state == Wave.State.RUNNING]
    return next(iter(running or waves), None)


def _begin(run: Run) -> bool:
    plan, wave = run.plan, run.wave
    if not plan.rolling_back:
        if plan.cancelling or _is_operation_cancelled(plan):
            plan.waves.filter(state=Wave.State.PENDING).update(
                state=Wave.State.SKIPPED, updated_at=run.now
            )
            return True
        if plan.paused_at is not None or _waits_for_floor(run):
            return False
    wave.detail = {**wave.detail, "before": routers.traffic_of(run.pool)}
    taken = Wave.objects.filter(pk=wave.pk, state=Wave.State.PENDING).update(
        state=Wave.State.RUNNING,
        step=first_step(run),
        started_at=wave.started_at or run.now,
        step_started_at=run.now,
        detail=wave.detail,
        updated_at=run.now,
    )
    return bool(taken)


def _is_operation_cancelled(plan: ChangePlan) -> bool:
    """True if somebody cancelled the plan where its progress is shown."""
    return plan.operation is not None and plan.operation.cancel_requested_at is not None


def _waits_for_floor(run: Run) -> bool:
    """True while taking the wave out would leave fewer ready engines than the plan's floor."""
    names = [item.workload for item in run.items]
    ready = Endpoint.objects.filter(pool=run.pool, state=State.READY)
    others = ready.exclude(workload__name__in=names).count()
    floor = int(run.plan.effects.get("floor", 0))
    if others >= floor:
        return False
    tell(run, waits_for=f"{others} engines are ready beside this wave; the floor is {floor}.")
    return True


@transaction.atomic
def _trip(run: Run, why: str) -> None:
    """Turn the plan around; a rollback that cannot go on fails and says what is left to do."""
    plan = ChangePlan.objects.select_for_update(no_key=True, of=("self",)).get(pk=run.plan.pk)
    if plan.state != ChangePlan.State.APPLYING or plan.rolling_back != run.plan.rolling_back:
        return
    audit.record(actor=None, action="changeplan.trip", subject=plan, reason=why[:200])
    if not plan.rolling_back:
        begin_rollback(plan, why=why)
        return
    Wave.objects.filter(pk=run.wave.pk).update(
        state=Wave.State.FAILED, ended_at=run.now, updated_at=run.now
    )
    left = plan.waves.filter(state=Wave.State.PENDING).count()
    plan.waves.filter(state=Wave.State.PENDING).update(state=Wave.State.SKIPPED, updated_at=run.now)
    plan.state, plan.ended_at = ChangePlan.State.FAILED, run.now
    plan.outcome = (
        f"{plan.outcome} The rollback of wave {run.wave.position} failed: {why} "
        f"Waves that still have the role of the plan: {left + 1}. Roll back again, or make a plan "
        "with the roles that are wanted."
    )[:2000]
    plan.save(update_fields=["state", "ended_at", "outcome", "updated_at"])
    outbox.emit("consort.changeplan.failed", subject=plan, data={"why": why})


@transaction.atomic
def _finish_plan(plan: ChangePlan) -> None:
    row = ChangePlan.objects.select_for_update(no_key=True, of=("self",)).get(pk=plan.pk)
    if row.state != ChangePlan.State.APPLYING or _current_wave(row) is not None:
        return
    done = row.waves.filter(state=Wave.State.SUCCEEDED).count()
    if row.rolling_back:
        row.state = ChangePlan.State.ROLLED_BACK
    elif row.waves.filter(state=Wave.State.SKIPPED).exists():
        row.state = ChangePlan.State.CANCELLED
        row.outcome = f"Cancelled after {done} of {row.waves.count()} waves."
    else:
        row.state, row.outcome = ChangePlan.State.SUCCEEDED, f"Waves done: {done}."
    row.ended_at = timezone.now()
    row.save(update_fields=["state", "ended_at", "outcome", "updated_at"])
    audit.record(actor=None, action="changeplan.end", subject=row, after={"state": row.state})
    outbox.emit(f"consort.changeplan.{row.state.replace('_', '-')}", subject=row)
