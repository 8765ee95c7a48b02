"""Desired engines, what targets say of them, and the endpoints that follow."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.common import permissions
from controlplane.serving import deployments, figures
from controlplane.serving.conditions import Status, with_condition
from controlplane.serving.models import Endpoint, Pool, RoleAssignment, Workload
from controlplane.serving.plans import PlanItem
from controlplane.serving.services import refusals
from controlplane.serving.services.holding import Hold
from controlplane.serving.targets import target
from controlplane.serving.targets.base import (
    SeenEngine,
    TargetRefusedError,
    TargetUnavailableError,
    WantedEngine,
)
from controlplane.telemetry import services as telemetry
from controlplane.telemetry.models import Evidence
from inventory.models import Accelerator

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

logger = logging.getLogger(__name__)

State = Endpoint.State
MAX_BACK_OFF_SECONDS = 60.0
LOG_BYTES = 32 * 1024
OF_TARGETS = frozenset({"Scheduled", "Ready", "Drifted"})
"""Conditions that only a target speaks of; what it does not say any more is taken away."""
WRITE_AGAIN_AFTER = timedelta(seconds=5)
"""An observation that did not change is written this often, as a proof of life."""


def want_engines(*, pool: Pool, items: Sequence[PlanItem]) -> None:
    """Write what should run on the accelerators of items; call inside the ledger's transaction.

    The generation grows only when something differs, so a second call changes nothing.
    """
    accelerators = {
        str(row.pk): row
        for row in Accelerator.objects.filter(
            pk__in=[item.accelerator for item in items]
        ).select_related("model", "node__cluster")
    }
    for item in items:
        accelerator = accelerators[item.accelerator]
        workload = _workload_of(item, accelerator)
        if workload is not None:
            _want(workload, pool, accelerator, item.to_role)


def _workload_of(item: PlanItem, accelerator: Accelerator) -> Workload | None:
    """The locked row of the accelerator; for one that gets a role also the row of its slot.

    A card that was replaced leaves its row to the next one. None if there is nothing to release.
    """
    rows = Workload.objects.select_for_update(no_key=True)
    workload = rows.filter(accelerator=accelerator).first()
    if workload is None and item.to_role:
        workload = rows.filter(name=item.workload).first() or Workload(name=item.workload)
        workload.accelerator, workload.node = accelerator, accelerator.node
        workload.target = item.target
    return workload


def _want(workload: Workload, pool: Pool, accelerator: Accelerator, role: str) -> None:
    assignment = RoleAssignment.objects.filter(
        members__accelerator=accelerator, members__open=True
    ).first()
    if role:
        url = workload.desired.get("url", "")
        desired = deployments.desired_spec(pool, accelerator, role=role, url=url)
        state = Workload.Desired.RUNNING
    else:
        desired, state = workload.desired, Workload.Desired.ABSENT
    changed = (workload.desired, workload.desired_state, workload.role) != (desired, state, role)
    workload.pool, workload.assignment = pool, assignment
    workload.desired, workload.desired_state, workload.role = desired, state, role
    if role and desired["manifests"]:
        workload.conditions = with_condition(
            workload.conditions, type="Rendered", status="True", reason="Plain", at=timezone.now()
        )
    workload.generation += changed
    workload.save()


def converge(pool: Pool, hold: Hold) -> dict[UUID, SeenEngine]:
    """One look at each target and cluster, then what differs is applied.

    Returns what was seen by workload. A place that does not answer, or refuses to be looked at, is
    a condition of its workloads, not an error, and no other place waits for it.
    """
    by_place: dict[tuple[str, str], list[Workload]] = defaultdict(list)
    rows = Workload.objects.filter(pool=pool).select_related(
        "node", "accelerator__model", "pool__model"
    )
    for workload in rows:
        if not _is_at_rest(workload):
            by_place[workload.target, str(workload.node.cluster_id)].append(workload)
    seen: dict[UUID, SeenEngine] = {}
    same: list[UUID] = []
    for (slug, _cluster), workloads in sorted(by_place.items()):
        hold.renew()
        found = _looked_at(slug, workloads)
        for workload in workloads:
            engine = found.get(workload.name)
            if engine is None:
                continue
            seen[workload.pk] = engine
            if not _take_in(workload, engine):
                same.append(workload.pk)
            _act(workload, engine, hold)
    _prove_life(same)
    return seen


def _looked_at(slug: str, workloads: Sequence[Workload]) -> dict[str, SeenEngine]:
    """What a place says of its engines; nothing when it does not answer, which is a condition."""
    status: Status = "Unknown"
    try:
        return target(slug).observe([_wanted(workload) for workload in workloads])
    except TargetUnavailableError as error:
        reason, message = "Unavailable", str(error)
    except TargetRefusedError as error:
        status, reason, message = "False", error.reason, str(error)
    for workload in workloads:
        _note(workload, "TargetReachable", status, reason, message)
    return {}


def workload_logs(*, workload_id: UUID, actor: "User", size: int = LOG_BYTES) -> str:
    """Last bytes of an engine's output. Raises NotPermittedError or TargetUnavailableError."""
    workload = Workload.objects.select_related("node", "pool").get(pk=workload_id)
    permissions.require(actor, "serving.view_workload", workload)
    return target(workload.target).logs(_wanted(workload), size=min(size, LOG_BYTES))


def is_as_wanted(workload: Workload, seen: SeenEngine | None) -> bool:
    """True once exactly the wanted engine runs, or none if none is wanted."""
    if seen is None:
        return False
    if workload.desired_state == Workload.Desired.ABSENT:
        return seen.state == "absent"
    return seen.state == "running" and seen.spec_hash == workload.desired["spec_hash"]


def was_asked_for(workload: Workload, seen: SeenEngine) -> bool:
    """True once the target knows that this engine is wanted, whether it runs or not."""
    wants_one = workload.desired_state == Workload.Desired.RUNNING
    return wants_one and bool(seen.asked_spec_hash == workload.desired.get("spec_hash"))


def _is_at_rest(workload: Workload) -> bool:
    """True if nothing should run and nothing does: no need to look."""
    is_absent = workload.observed.get("state") == "absent"
    return workload.desired_state == Workload.Desired.ABSENT and bool(is_absent)


def _wanted(workload: Workload) -> WantedEngine:
    desired = workload.desired
    return WantedEngine(
        name=workload.name,
        generation=workload.generation,
        spec_hash=desired.get("spec_hash", ""),
        argv=tuple(desired.get("argv", ())),
        env=desired.get("env", {}),
        url=desired.get("url", ""),
        cluster=str(workload.node.cluster_id),
        pool=workload.pool.slug,
        manifests=tuple(desired.get("manifests", ())),
    )


def _act(workload: Workload, seen: SeenEngine, hold: Hold) -> None:
    """Ask the target for what differs; it answers at once and works by itself."""
    if not _is_due(workload, seen):
        return
    if seen.state == "running" and seen.instance:
        # What it counted since the last scrape would end with the process.
        telemetry.scrape_engine(instance=seen.instance)
    wants_none = workload.desired_state == Workload.Desired.ABSENT
    hold.renew()
    try:
        if wants_none:
            target(workload.target).delete(_wanted(workload), fencing_token=hold.token)
        else:
            target(workload.target).apply(_wanted(workload), fencing_token=hold.token)
    except TargetUnavailableError as error:
        _note(workload, "TargetReachable", "Unknown", "Unavailable", str(error))
    except TargetRefusedError as error:
        if not error.fenced:
            refusals.remember(workload)
        _note(workload, "Applied", "False", error.reason, str(error))
    else:
        refusals.forget(workload)
        _note(workload, "Applied", "True", "Applied", "")


def _is_due(workload: Workload, seen: SeenEngine) -> bool:
    """True if the target has to be asked for something that it was not asked for yet."""
    now = timezone.now()
    if seen.state == "unknown" or refusals.still_waits(workload, now):
        return False
    if is_as_wanted(workload, seen) or _heals(workload, seen):
        return _heals(workload, seen)
    if not was_asked_for(workload, seen):
        return True
    # What began goes on by itself; what ended does so in a place that starts it again.
    goes_on = seen.state in {"starting", "ending"}
    if goes_on or target(workload.target).capabilities().restarts_engines:
        return False
    return not (seen.state in {"exited", "failed"} and _backs_off(seen, now))


def _heals(workload: Workload, seen: SeenEngine) -> bool:
    """True if somebody changed what was asked for, and the pool says that this is put right."""
    wants_one = workload.desired_state == Workload.Desired.RUNNING
    return wants_one and seen.has_drifted and workload.pool.self_heal


def _backs_off(seen: SeenEngine, now: datetime) -> bool:
    """True while an engine that ended by itself is not to be started again yet: 1, 2, 4 … s."""
    if seen.exited_at is None:
        return False
    pause = min(MAX_BACK_OFF_SECONDS, 2.0 ** max(0, seen.starts - 1))
    return now.timestamp() < seen.exited_at + pause


def _take_in(workload: Workload, seen: SeenEngine) -> bool:
    """Write what was seen; False if the same was written before, which needs no writing."""
    now = timezone.now()
    reached = workload.observed_generation == workload.generation
    is_same = workload.observed == seen.as_json() and reached == is_as_wanted(workload, seen)
    if is_same and workload.observed_at and workload.conditions == _conditions(workload, seen, now):
        return False
    _write(workload, seen, now)
    return True


def _prove_life(same: Sequence[UUID]) -> None:
    """Note for all at once that they were seen again, unless that was noted a moment ago."""
    now = timezone.now()
    Workload.objects.filter(pk__in=same, observed_at__lt=now - WRITE_AGAIN_AFTER).update(
        observed_at=now, updated_at=now
    )


@transaction.atomic
def _write(workload: Workload, seen: SeenEngine, now: datetime) -> None:
    """One transaction: the workload's row, and endpoints, which follow the life of the process."""
    if seen.state != "unknown":
        _end_other_instances(workload, seen, now)
    runs = workload.desired_state == Workload.Desired.RUNNING and is_as_wanted(workload, seen)
    if runs and seen.url and seen.instance:
        _register(workload, seen, now)
    workload.observed = seen.as_json()
    workload.observed_at = now
    if is_as_wanted(workload, seen):
        workload.observed_generation = workload.generation
    workload.conditions = _conditions(workload, seen, now)
    workload.save(
        update_fields=["observed", "observed_at", "observed_generation", "conditions", "updated_at"]
    )


def _conditions(workload: Workload, seen: SeenEngine, now: datetime) -> list[dict[str, Any]]:
    rows = with_condition(
        workload.conditions, type="TargetReachable", status="True", reason="Answered", at=now
    )
    said = {row.type: row for row in seen.conditions}
    rows = [row for row in rows if row["type"] not in OF_TARGETS - set(said)]
    for row in seen.conditions:
        if row.type in OF_TARGETS:
            rows = with_condition(
                rows, type=row.type, status=row.status, reason=row.reason, message=row.message,
                at=now,
            )  # fmt: skip
    status: Status = "True" if is_as_wanted(workload, seen) else "False"
    reason, message = str(seen.state), seen.failure
    if seen.state == "exited":
        code = "unknown" if seen.exit_code is None else str(seen.exit_code)
        message = message or f"The process ended with code {code}; starts: {seen.starts}."
    if "Started" in said:
        reason, message = said["Started"].reason, said["Started"].message
        status = "Unknown" if said["Started"].status == "Unknown" else status
    if seen.state == "unknown":
        status = "Unknown"
    return with_condition(
        rows, type="Started", status=status, reason=reason, message=message, at=now
    )


def _end_other_instances(workload: Workload, seen: SeenEngine, now: datetime) -> None:
    for endpoint in workload.endpoints.live():
        if endpoint.instance == seen.instance and seen.state != "absent":
            continue
        endpoint.state, endpoint.gone_at = State.GONE, now
        endpoint.gone_reason = _why_gone(seen)
        endpoint.save(update_fields=["state", "gone_at", "gone_reason", "updated_at"])
        telemetry.end_engine(instance=endpoint.instance, at=now)


def _why_gone(seen: SeenEngine) -> str:
    if seen.state == "exited" and seen.exit_code is not None:
        return f"ended with code {seen.exit_code}"
    return {"running": "replaced", "starting": "replaced", "ending": "ending"}.get(
        seen.state, "ended"
    )


def _register(workload: Workload, seen: SeenEngine, now: datetime) -> None:
    accelerator, desired = workload.accelerator, workload.desired
    endpoint, created = Endpoint.objects.get_or_create(
        workload=workload,
        instance=seen.instance,
        defaults={
            "pool": workload.pool,
            "node": workload.node,
            "url": seen.url or "",
            "role": workload.role,
            "engine": desired["engine"],
            "pid": seen.pid,
            "observed_at": now,
        },
    )
    if not created and endpoint.role == workload.role and endpoint.state != State.GONE:
        return
    endpoint.role, endpoint.pool, endpoint.url = workload.role, workload.pool, str(seen.url)
    endpoint.kv_contract = desired["kv_contract"]
    endpoint.block_size_tokens = desired["block_size_tokens"]
    endpoint.max_model_len = workload.pool.model.max_model_len
    endpoint.kv_capacity_tokens = figures.capacity_tokens(
        accelerator.model, workload.pool.model, desired["memory_share"]
    )
    if endpoint.state == State.GONE:
        endpoint.state, endpoint.gone_at, endpoint.gone_reason = State.STARTING, None, ""
    endpoint.save()
    is_simulated = desired["engine"] == Pool.Engine.SIMULATED
    telemetry.register_engine(
        telemetry.EngineTarget(
            endpoint=workload.name,
            instance=endpoint.instance,
            metrics_url=f"{endpoint.url}/metrics",
            engine="sglang" if desired["engine"] == "sglang" else "vllm",
            node=workload.node,
            accelerators=[accelerator],
            pool=workload.pool.slug,
            role=workload.role,
            source=Evidence.SIMULATED if is_simulated else Evidence.MEASURED,
            counts_from_start=workload.target != "static",
        )
    )


def _note(workload: Workload, kind: str, status: Status, reason: str, message: str) -> None:
    rows = with_condition(
        workload.conditions,
        type=kind,
        status=status,
        reason=reason,
        message=message,
        at=timezone.now(),
    )
    if rows != workload.conditions:
        workload.conditions = rows
        workload.save(update_fields=["conditions", "updated_at"])
