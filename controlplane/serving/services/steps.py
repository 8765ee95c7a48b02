"""The steps of a wave. Each finds out what is true and may run any number of times: a worker that
dies anywhere leaves rows from which the next run goes on.

(prefetch →) drain → switch → start → ready → add → observe → done. Only a pool that names the files
of its model has the first one. A rollback runs the same steps with the roles swapped, without the
first one and without the soak time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from controlplane.operations import outbox
from controlplane.serving import plans, traffic
from controlplane.serving.engines.base import EngineArgumentError
from controlplane.serving.errors import LedgerConflictError
from controlplane.serving.models import (
    ArtefactPresence,
    ChangePlan,
    Endpoint,
    Pool,
    Router,
    RouterPush,
    Wave,
    Workload,
)
from controlplane.serving.renderers.base import RenderRefusedError
from controlplane.serving.services import artefacts, guards, ledger, refusals, routers, workloads
from controlplane.serving.targets.base import SeenEngine

State = Endpoint.State
Step = Wave.Step
Presence = ArtefactPresence.State


@dataclass(slots=True)
class Run:
    """One look at the wave of a plan that is under way."""

    plan: ChangePlan
    wave: Wave
    seen: Mapping[UUID, SeenEngine]
    now: datetime

    @property
    def pool(self) -> Pool:
        return self.plan.pool

    @property
    def items(self) -> list[plans.PlanItem]:
        """Changes of the wave in the direction in which it runs."""
        return plans.items_of(self.wave.items, backwards=self.wave.backwards)

    def workloads(self) -> list[tuple[plans.PlanItem, Workload]]:
        """Engines of the wave that exist, with their change."""
        by_accelerator = {
            str(row.accelerator_id): row
            for row in Workload.objects.filter(
                accelerator__in=[item.accelerator for item in self.items]
            )
        }
        return [
            (item, by_accelerator[item.accelerator])
            for item in self.items
            if item.accelerator in by_accelerator
        ]

    def is_over(self, seconds: float) -> bool:
        """True once the step has taken longer."""
        started = self.wave.step_started_at
        return started is not None and self.now > started + timedelta(seconds=seconds)


class TrippedError(Exception):
    """The wave cannot go on; the sentence says which number or answer stopped it."""


def first_step(run: Run) -> str:
    """Files are brought before anything stops serving; backwards they are there already."""
    brings = run.pool.artefact_id is not None and any(item.to_role for item in run.items)
    return Step.PREFETCH if brings and not run.wave.backwards else Step.DRAIN


def _prefetch(run: Run) -> bool:
    """(0) The model's files are on the wave's nodes, and they are the stated ones."""
    seconds = run.plan.prefetch_seconds
    rows = artefacts.bring_files(run.pool, run.items, seconds=seconds)
    wrong = [row for row in rows if row.state == Presence.WRONG]
    if wrong:
        row = wrong[0]
        raise TrippedError(
            f"Files of {row.artefact.slug} on {row.node.hostname} are not the stated ones: SHA-256 "
            f"{row.sha256}, stated {row.artefact.sha256}."
        )
    missing = [row for row in rows if row.state != Presence.PRESENT]
    if not missing:
        return move(run, Step.DRAIN, files={row.node.hostname: row.sha256 for row in rows})
    row = missing[0]
    words = f"{Presence(row.state).value}{f': {row.detail}' if row.detail else '.'}"
    if run.is_over(seconds):
        raise TrippedError(
            f"Files of {row.artefact.slug} were not on {row.node.hostname} after {seconds:g} s; "
            f"{words}"
        )
    tell(run, waits_for=f"Files of {row.artefact.slug} on {row.node.hostname}: {words}")
    return False


def _drain(run: Run) -> bool:
    """(a) Take engines out of the documents, and wait for their running requests."""
    leaving = [
        endpoint
        for item, workload in run.workloads()
        for endpoint in workload.endpoints.live().exclude(role=item.to_role)
    ]
    marked = Endpoint.objects.filter(
        pk__in=[endpoint.pk for endpoint in leaving], state=State.READY
    ).update(state=State.DRAINING, updated_at=run.now)
    if marked:
        return True
    draining = {row.workload_id for row in leaving if row.state == State.DRAINING}
    if not draining:
        return move(run, Step.SWITCH)
    return _have_routers_followed(run) and _is_drained(run, draining)


def _is_drained(run: Run, draining: set[UUID]) -> bool:
    ids = [workload.name for _, workload in run.workloads() if workload.pk in draining]
    left = _unfinished(run.pool, ids)
    if left == 0:
        return move(run, Step.SWITCH, unfinished=0)
    if run.is_over(run.plan.drain_seconds):
        return move(run, Step.SWITCH, unfinished=left, cut_off=left)
    tell(run, unfinished=left)
    return False


def _unfinished(pool: Pool, endpoint_ids: list[str]) -> int | None:
    """Requests on endpoints over the routers in reach; None if a router does not say."""
    reached = routers.in_reach(list(Router.objects.filter(enabled=True)))
    counts = [traffic.unfinished(row.observed, pool.slug, endpoint_ids) for row in reached]
    known = [count for count in counts if count is not None]
    return None if len(known) < len(counts) else sum(known)


def _have_routers_followed(run: Run) -> bool:
    """True once every router in reach has the latest document; others get it on their return.

    Raises TrippedError if a router refused it.
    """
    document = run.pool.documents.order_by("-version").first()
    if document is None:
        return True
    refused = document.pushes.filter(state=RouterPush.State.REFUSED).exclude(pointer="/version")
    if (push := refused.select_related("router").first()) is not None:
        raise TrippedError(
            f"Router {push.router.name} refused document version {document.version} at "
            f"'{push.pointer}': {push.detail}"
        )
    enabled = list(Router.objects.filter(enabled=True))
    reached = routers.in_reach(enabled)
    behind = [row.name for row in reached if routers.version_at(row, run.pool) < document.version]
    away = sorted({row.name for row in enabled} - {row.name for row in reached})
    if behind and not run.is_over(run.plan.drain_seconds):
        tell(run, waits_for=f"Not on version {document.version} yet: {', '.join(behind)}.")
        return False
    tell(run, routers_away=away + behind, document=document.version, waits_for="")
    return True


def _switch(run: Run) -> bool:
    """(b) Close the old assignments, open the others, and write what should run, all at once."""
    direction = "Rollback" if run.wave.backwards else "Wave"
    reason = f"{direction} {run.wave.position} of {run.plan.number}: {run.plan.reason}"[:300]
    try:
        with transaction.atomic():
            if not move(run, Step.START):
                return True
            ledger.switch_roles(plan=run.plan, items=run.items, reason=reason)
            workloads.want_engines(pool=run.pool, items=run.items)
    except (LedgerConflictError, EngineArgumentError, RenderRefusedError) as error:
        raise TrippedError(str(error)) from error
    return True


def _start(run: Run) -> bool:
    """(c) The loop ends the old engines and starts the others; wait until that is seen."""
    missing = [
        workload
        for _, workload in run.workloads()
        if not workloads.is_as_wanted(workload, run.seen.get(workload.pk))
        and not _is_gone_for_good(workload)
    ]
    if not missing:
        return move(run, Step.READY)
    _require_not_refused(missing)
    _require_no_crash_loop(run)
    if run.is_over(run.plan.ready_seconds):
        raise TrippedError(_why_not(missing[0], "Started", run.plan.ready_seconds))
    return False


def _is_gone_for_good(workload: Workload) -> bool:
    return (
        workload.desired_state == Workload.Desired.ABSENT
        and workload.observed.get("state") == "absent"
    )


def _ready(run: Run) -> bool:
    """(d) Each engine lists the model and answered a real completion."""
    for item, workload in run.workloads():
        # An engine that was only taken out of the documents, as before a rollback, comes back.
        if workloads.is_as_wanted(workload, run.seen.get(workload.pk)):
            workload.endpoints.filter(state=State.DRAINING, role=item.to_role).update(
                state=State.READY, updated_at=run.now
            )
    ready = set(
        Endpoint.objects.filter(
            workload__name__in=[item.workload for item in run.items], state=State.READY
        ).values_list("workload__name", "role")
    )
    missing = [
        workload
        for item, workload in run.workloads()
        if item.to_role and (item.workload, item.to_role) not in ready
    ]
    if not missing:
        return move(run, Step.ADD)
    _require_no_crash_loop(run)
    if run.is_over(run.plan.ready_seconds):
        raise TrippedError(_why_not(missing[0], "Serving", run.plan.ready_seconds))
    return False


def _add(run: Run) -> bool:
    """(e) Routers have a document with the engines in it, with a ramp."""
    if not _have_routers_followed(run):
        return False
    return move(run, Step.OBSERVE, added=routers.traffic_of(run.pool))


def _observe(run: Run) -> bool:
    """(f) Watch the guards for the soak time. Missing numbers trip nothing."""
    if not run.wave.backwards:
        _require_no_crash_loop(run)
        detail = run.wave.detail
        look = guards.look(
            detail.get("before", {}), detail.get("added", {}), routers.traffic_of(run.pool)
        )
        tell(run, after=look.as_json())
        if sentence := guards.tripped(look, run.plan.guards):
            raise TrippedError(sentence)
        if not run.is_over(run.plan.soak_seconds):
            return False
    _end_wave(run)
    return True


STEPS: dict[str, Callable[[Run], bool]] = {
    Step.PREFETCH: _prefetch,
    Step.DRAIN: _drain,
    Step.SWITCH: _switch,
    Step.START: _start,
    Step.READY: _ready,
    Step.ADD: _add,
    Step.OBSERVE: _observe,
}


def _require_not_refused(missing: Sequence[Workload]) -> None:
    """A target that said no says it again: there is nothing to wait for."""
    for workload in missing:
        if refusals.is_refused(workload):
            raise TrippedError(f"Engine {workload.name}: {_said(workload, 'Applied')}")


def _require_no_crash_loop(run: Run) -> None:
    limit = int(run.plan.guards.get("max_starts", 4))
    for _, workload in run.workloads():
        engine = run.seen.get(workload.pk)
        if engine is None or not workloads.was_asked_for(workload, engine):
            continue
        if engine.starts > limit:
            told = f" {engine.failure}" if engine.failure else ""
            raise TrippedError(
                f"Engine {workload.name} was started {engine.starts} times; the guard is "
                f"{limit}.{told}"
            )


def _why_not(workload: Workload, condition: str, seconds: float) -> str:
    return f"Engine {workload.name} was not there after {seconds:g} s: {_said(workload, condition)}"


def _said(workload: Workload, condition: str) -> str:
    """Message of a condition, else its reason."""
    rows = [row for row in workload.conditions if row["type"] == condition]
    seen = [row["message"] or row["reason"] for row in rows]
    return seen[0] if seen else "nothing was seen of it"


def move(run: Run, step: str, **detail: Any) -> bool:
    """Claim the next step; False if another run moved the wave before."""
    moved = Wave.objects.filter(
        pk=run.wave.pk, step=run.wave.step, state=Wave.State.RUNNING
    ).update(
        step=step,
        step_started_at=run.now,
        detail={**run.wave.detail, **detail, "waits_for": ""},
        updated_at=run.now,
    )
    return bool(moved)


def tell(run: Run, **detail: Any) -> None:
    """Write what a person watching wants to know, if it differs."""
    merged = {**run.wave.detail, **detail}
    if merged != run.wave.detail:
        run.wave.detail = merged
        Wave.objects.filter(pk=run.wave.pk).update(detail=merged, updated_at=run.now)


@transaction.atomic
def _end_wave(run: Run) -> None:
    state = Wave.State.ROLLED_BACK if run.wave.backwards else Wave.State.SUCCEEDED
    ended = Wave.objects.filter(pk=run.wave.pk, state=Wave.State.RUNNING).update(
        state=state, step=Step.DONE, ended_at=run.now, updated_at=run.now
    )
    if ended:
        outbox.emit("consort.wave.ended", subject=run.wave, data={"state": str(state)})
