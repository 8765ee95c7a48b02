"""Runs: started by a person, worked on by a task, cancelled without leaving half a result."""

import logging
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from controlplane.operations import services as operations
from controlplane.operations.errors import OperationLostError
from controlplane.operations.models import Operation
from controlplane.planning import selectors
from controlplane.planning.errors import RunEndedError, ScenarioRetiredError, TooManyRunsError
from controlplane.planning.models import Advice, Scenario, ScenarioRun
from controlplane.serving.models import Pool
from routing.planner.accuracy import ENGINE_MODEL
from routing.planner.advice import Plan, PoolAdvice
from routing.planner.problem import parse_problem
from routing.planner.search import advise
from routing.planner.trial import Cancelled

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

_COUNT_LOCK = 0x504C414E52554E53
"""Key of the advisory lock under which open runs are counted: "PLANRUNS"."""
logger = logging.getLogger(__name__)

MOST_OPEN_RUNS = 8
"""Of the whole organisation. Each takes a core for up to a minute; more would starve the other
tasks of two workers."""
MOST_LOST = 3
"""Workers that may die with a run: what takes one's memory takes the next one's, too."""
LOOK_EVERY_SECONDS = 1.0


@transaction.atomic
def run_scenario(*, scenario_id: UUID, actor: "User", seed: int = 1) -> ScenarioRun:
    """Start a run of the scenario as it is now.

    Raises NotPermittedError, ScenarioRetiredError or TooManyRunsError.
    """
    scenario = Scenario.objects.select_for_update(no_key=True).get(pk=scenario_id)
    permissions.require(actor, "planning.run_scenario", scenario)
    if scenario.retired_at is not None:
        raise ScenarioRetiredError(scenario=scenario.name)
    # One at a time, or two scenarios would count the same runs.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_COUNT_LOCK])
    open_runs = selectors.open_run_count()
    if open_runs >= MOST_OPEN_RUNS:
        raise TooManyRunsError(open=open_runs, allowed=MOST_OPEN_RUNS)
    operation = operations.start(
        kind="planning.run-scenario",
        subject=scenario,
        task="planning.tasks.run_scenario",
        actor=actor,
    )
    run = ScenarioRun.objects.create(
        scenario=scenario,
        operation=operation,
        seed=seed,
        engine_model=ENGINE_MODEL,
        problem=scenario.problem,
        members=scenario.members,
        created_by=actor,
    )
    audit.record(actor=actor, action="scenario.run", subject=scenario, after={"seed": seed})
    outbox.emit("consort.scenariorun.started", subject=run)
    return run


def cancel_run(*, run_id: UUID, actor: "User", reason: str = "") -> ScenarioRun:
    """Ask for the end of a run; nothing of it is kept. A second call changes nothing.

    Raises NotPermittedError or RunEndedError.
    """
    with transaction.atomic():
        run = ScenarioRun.objects.select_related("operation").get(pk=run_id)
        permissions.require(actor, "planning.run_scenario", run)
        operation = Operation.objects.select_for_update(no_key=True).get(pk=run.operation_id)
        if operation.has_ended:
            raise RunEndedError(state=Operation.State(operation.state))
        if operation.cancel_requested_at is None:
            # Whoever may run scenarios may end a run of one.
            operations.ask_to_end(operation)
            audit.record(actor=actor, action="scenario.cancel-run", subject=run, reason=reason)
    run.refresh_from_db()
    return run


def work_on_run(*, operation_id: UUID) -> None:
    """Do a run; delivered twice, one of the two works and the other returns."""
    operation = operations.claim(operation_id, most_lost=MOST_LOST)
    if operation is None:
        return
    run = ScenarioRun.objects.select_related("scenario").get(operation=operation)
    watch = _Watch(operation)
    try:
        plan = advise(
            parse_problem(run.problem),
            seed=run.seed,
            requests=settings.PLANNING_REQUESTS,
            progress=watch.progress,
            should_stop=watch.should_stop,
        )
        _store(run, operation, plan)
    except Cancelled:
        operations.cancelled(operation)
    except OperationLostError:
        return
    except Exception as error:  # edge to the simulator: whatever it meets, people are told
        logger.exception("Run %s of scenario %s failed", run.pk, run.scenario_id)
        operations.fail(operation, error)


class _Watch:
    """Between a run and its operation: progress out, wish to cancel in, at most once a second."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._looked_at = time.monotonic()
        self._is_cancelled = False

    def progress(self, done: int, total: int) -> None:
        """Write how many simulations are over."""
        operations.progress(self._operation, done=done, total=total, unit="simulations")

    def should_stop(self) -> bool:
        """True once somebody asked for the end; renews the claim on the way."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY_SECONDS:
            self._looked_at = now
            operations.renew(self._operation)
            self._is_cancelled = operations.is_cancel_requested(self._operation)
        return self._is_cancelled


@transaction.atomic
def _store(run: ScenarioRun, operation: Operation, plan: Plan) -> None:
    """The whole result, or nothing."""
    row = ScenarioRun.objects.select_for_update(no_key=True).get(pk=run.pk)
    row.result = msgspec.to_builtins(plan)
    row.error_band = msgspec.to_builtins(plan.error)
    row.engine_model = plan.engine_model
    row.finished_at = timezone.now()
    row.save(update_fields=["result", "error_band", "engine_model", "finished_at", "updated_at"])
    pools = {
        pool.slug: pool for pool in Pool.objects.filter(slug__in=[one.pool for one in plan.pools])
    }
    is_ours = row.scenario.origin == Scenario.Origin.FLEET
    Advice.objects.bulk_create(
        Advice(
            run=row, pool=pools.get(one.pool) if is_ours else None, name=one.pool,
            verdict=one.verdict, gain=one.gain, content=plain(one), error_band=row.error_band,
            members=row.members,
        )
        for one in plan.pools
    )  # fmt: skip
    operations.succeed(operation, result={"run": str(row.pk), "pools": len(plan.pools)})
    outbox.emit("consort.scenariorun.finished", subject=row)


def plain(advice: PoolAdvice) -> dict[str, Any]:
    """Advice as it is read back: lists where the planner has tuples."""
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(advice))
    return values
