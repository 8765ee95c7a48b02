"""What the demo asks the planner, and what it says of the answer."""

from typing import Any

import pytest

from controlplane.operations.models import Operation
from controlplane.planning import services
from controlplane.planning.models import Scenario
from deploy.demo import advice
from tests.controlplane.planning.rows import make_serving_fleet
from tests.factories import make_olga

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short_runs(settings: Any) -> None:
    """A few hundred requests a run."""
    settings.PLANNING_REQUESTS = 400


def test_the_advice_is_said_with_its_reasons_and_its_model_error() -> None:
    pool, _node = make_serving_fleet(both=4)
    said: list[str] = []
    run = advice.run_scenario(pool, actor=make_olga())
    services.work_on_run(operation_id=run.operation_id)

    failure = advice.tell(run, say=said.append)

    assert failure == ""
    assert said[0].startswith(f"Planner, pool {pool.slug}: ")
    assert "model error 15 % of throughput" in said[-1]
    assert run.scenario.simulated


def test_a_second_demo_makes_its_scenario_anew() -> None:
    pool, _node = make_serving_fleet(both=2)
    olga = make_olga()
    first = advice.run_scenario(pool, actor=olga)
    second = advice.run_scenario(pool, actor=olga)

    assert first.scenario_id != second.scenario_id
    assert Scenario.objects.get(retired_at__isnull=True).pk == second.scenario_id


def test_a_run_that_failed_is_said_to_have() -> None:
    pool, _node = make_serving_fleet(both=2)
    run = advice.run_scenario(pool, actor=make_olga())
    Operation.objects.filter(pk=run.operation_id).update(
        state="failed", finished_at=run.created_at, error={"detail": "x"}
    )

    assert "is failed" in advice.tell(run, say=lambda _line: None)
