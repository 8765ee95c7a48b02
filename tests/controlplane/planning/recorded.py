"""A run that was once made by the planner, as rows: pages need no simulation.

`recorded_run.json` is a plan of the three-vendor site of the console's tests at 35 requests/s.
"""

import json
from pathlib import Path

from django.utils import timezone

from controlplane.operations.models import Operation
from controlplane.planning.models import Advice, Scenario, ScenarioRun
from controlplane.serving.models import Pool
from controlplane.tenancy.models import User

RECORDED = json.loads(Path(__file__).with_name("recorded_run.json").read_text())


def make_recorded_run(
    actor: User, *, pool: Pool | None = None, scenario: Scenario | None = None, seed: int = 1
) -> ScenarioRun:
    """A scenario with a run that has succeeded and its advice."""
    scenario = scenario or Scenario.objects.create(
        name=f"evening peak {seed}", problem=RECORDED["problem"], created_by=actor, origin="fleet"
    )
    now = timezone.now()
    operation = Operation.objects.create(
        kind="planning.run-scenario", task="controlplane.planning.tasks.run_scenario",
        state="succeeded", created_by=actor, progress_done=4, progress_total=4,
        progress_unit="simulations", finished_at=now, subject_repr=scenario.name,
    )  # fmt: skip
    result = RECORDED["result"]
    run = ScenarioRun.objects.create(
        scenario=scenario, operation=operation, seed=seed, engine_model=result["engine_model"],
        problem=scenario.problem, result=result, error_band=result["error"], finished_at=now,
        created_by=actor,
    )  # fmt: skip
    for one in result["pools"]:
        Advice.objects.create(
            run=run, pool=pool, name=one["pool"], verdict=one["verdict"], gain=one["gain"],
            content=one, error_band=result["error"],
        )  # fmt: skip
    return run
