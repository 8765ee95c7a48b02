"""The one loop per pool that makes observed equal desired; a task only nudges it.

A run is short: looks, small steps, and a few seconds of patience while a plan is applied. It holds
the pool's lease, so one acts at a time, and targets refuse an earlier holder.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.utils import timezone

from controlplane.common import jobs
from controlplane.operations import services as operations
from controlplane.operations.errors import OperationLostError
from controlplane.operations.models import Operation
from controlplane.serving.conditions import Status, with_condition
from controlplane.serving.models import ChangePlan, Pool, Router, Wave
from controlplane.serving.services import (
    holding,
    probes,
    publishing,
    pushing,
    routers,
    waves,
    workloads,
)
from routing.core.document import DocumentError

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 4.0
PAUSE_SECONDS = 0.3


class PlanFailedError(Exception):
    """The plan ended in another way than it should; the message is its outcome."""


def reconcile_pools() -> int:
    """Run the loop of every active pool once; returns how many ran."""
    pools = Pool.objects.filter(state=Pool.State.ACTIVE).values_list("pk", flat=True)
    return sum(reconcile_pool(pool_id=pool_id) for pool_id in pools)


def follow_operation(*, operation_id: UUID) -> bool:
    """Run the loop of the pool whose plan the operation applies."""
    plan = ChangePlan.objects.filter(operation=operation_id).first()
    return plan is not None and reconcile_pool(pool_id=plan.pool_id)


def reconcile_pool(*, pool_id: UUID, patience_seconds: float = PATIENCE_SECONDS) -> bool:
    """Bring a pool closer to what is wanted; False if another run has its lease.

    While a plan is applied it looks again every fraction of a second for at most
    `patience_seconds`, and then asks for the next run.
    """
    pool = Pool.objects.select_related("model").filter(pk=pool_id).first()
    hold = holding.take(pool) if pool else None
    if pool is None or hold is None:
        return False
    try:
        is_busy = _run(pool, hold, time.monotonic() + patience_seconds)
    except holding.HoldLostError:
        logger.warning("Another run took over pool %s; this one stops.", pool.slug)
        return False
    finally:
        holding.release(hold)
    if is_busy:
        jobs.after_commit("serving.tasks.reconcile_pool", str(pool.pk))
    return True


def _run(pool: Pool, hold: holding.Hold, deadline: float) -> bool:
    """Pass after pass until nothing moves, or time is up.

    True if a plan is still under way, or new settings are watched on one router.
    """
    while True:
        plan = waves.applying_plan(pool)
        moved, watches = _pass(pool, plan, hold)
        if plan is None and not moved and not watches:
            return False
        if time.monotonic() >= deadline:
            return plan is not None or watches
        if not moved:
            time.sleep(PAUSE_SECONDS)


def _pass(pool: Pool, plan: ChangePlan | None, hold: holding.Hold) -> tuple[bool, bool]:
    """Whether something moved, and whether a canary is watched."""
    seen = workloads.converge(pool, hold)
    ready = probes.probe_starting(pool, hold)
    probes.look_at_ready(pool, hold)
    published = _publish(pool)
    if plan is not None:
        hold.renew()
        routers.poll_routers()
    hold.renew()
    watches = pushing.push_latest(pool)
    moved = False
    if plan is not None:
        hold.renew()
        moved = waves.advance(plan, seen)
    _report_plans(pool)
    _note_conditions(pool)
    return bool(ready) or published or moved, watches


def _publish(pool: Pool) -> bool:
    try:
        document = publishing.publish_if_changed(pool_id=pool.pk)
    except DocumentError as error:
        _note(pool, "DocumentBuilt", "False", error.pointer or "Refused", error.message)
        return False
    _note(pool, "DocumentBuilt", "True", "Built", "")
    return document is not None


def _note_conditions(pool: Pool) -> None:
    document = pool.documents.order_by("-version").first()
    version = document.version if document else 0
    behind = [
        router.name
        for router in Router.objects.filter(enabled=True)
        if routers.version_at(router, pool) != version
    ]
    if behind:
        message = f"Not on version {version}: {', '.join(behind)}."
        _note(pool, "RoutersInSync", "False", "Behind", message)
    else:
        _note(pool, "RoutersInSync", "True", "Acknowledged", "")
    if pool.canary.get("state") == "tripped":
        _note(pool, "SettingsAccepted", "False", "CanaryTripped", _why_held(pool))
    else:
        _note(pool, "SettingsAccepted", "True", pool.canary.get("state", "accepted"), "")
    Pool.objects.filter(pk=pool.pk).update(reconciled_at=timezone.now())


def _why_held(pool: Pool) -> str:
    return (
        f"{pool.canary['why']} Routers have the settings before it. Change the settings, or set "
        "the time a canary is watched to 0 to give them to every router as they are."
    )


def _note(pool: Pool, kind: str, status: Status, reason: str, message: str) -> None:
    rows = with_condition(
        pool.conditions,
        type=kind,
        status=status,
        reason=reason,
        message=message,
        at=timezone.now(),
    )
    if rows != pool.conditions:
        pool.conditions = rows
        Pool.objects.filter(pk=pool.pk).update(conditions=rows)


def _report_plans(pool: Pool) -> None:
    """Write waves and plans that ended into their operations; a run that dies leaves it to others.

    The pool's lease keeps reports apart, so the claim on the operation is let go at once.
    """
    open_states = [Operation.State.PENDING, Operation.State.RUNNING]
    rows = ChangePlan.objects.filter(pool=pool, operation__state__in=open_states)
    for plan in rows.select_related("operation"):
        operation = plan.operation
        if operation is None:
            continue
        due = _waves_to_report(plan, operation)
        if not due and plan.is_open and operation.state == Operation.State.RUNNING:
            continue
        claimed = operations.claim(operation.pk)
        if claimed is not None:
            with suppress(OperationLostError):
                _report(plan, claimed, due)


def _report(plan: ChangePlan, operation: Operation, due: Sequence[Wave]) -> None:
    for wave in due:
        with operations.step(operation, f"wave {wave.position}") as step:
            step.detail = str(Wave.State(wave.state).label)
    if plan.is_open:
        operations.renew(operation, seconds=0)
    else:
        _close(operation, plan)


def _waves_to_report(plan: ChangePlan, operation: Operation) -> list[Wave]:
    open_steps = set(
        operation.steps.exclude(state__in=["succeeded", "skipped"]).values_list("name", flat=True)
    )
    ended = plan.waves.exclude(state__in=[Wave.State.PENDING, Wave.State.RUNNING])
    return [wave for wave in ended if f"wave {wave.position}" in open_steps]


def _close(operation: Operation, plan: ChangePlan) -> None:
    result: Mapping[str, Any] = {"plan": plan.number, "state": plan.state}
    by_hand = operation.kind == "serving.roll-back-plan"
    good = {ChangePlan.State.SUCCEEDED} | ({ChangePlan.State.ROLLED_BACK} if by_hand else set())
    if plan.state in good:
        operations.succeed(operation, result=result)
    elif plan.state == ChangePlan.State.CANCELLED:
        operations.cancelled(operation)
    else:
        operations.fail(operation, PlanFailedError(plan.outcome))
