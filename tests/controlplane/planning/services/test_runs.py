"""Runs: one result however often the task is delivered, and none when cancelled."""

from typing import Any

import pytest
from django.utils import timezone

from controlplane.common.permissions import NotPermittedError
from controlplane.operations import services as operations
from controlplane.operations.models import Operation
from controlplane.planning import services, tasks
from controlplane.planning.errors import RunEndedError, TooManyRunsError
from controlplane.planning.models import Advice, ScenarioRun
from controlplane.planning.services import FleetQuestion
from controlplane.planning.services.runs import MOST_LOST, MOST_OPEN_RUNS
from tests.controlplane.planning.rows import (
    TRAFFIC,
    make_finished_run,
    make_run,
    make_scenario,
    make_serving_fleet,
)
from tests.factories import make_ben, make_olga
from tests.racing import at_the_same_time

pytestmark = pytest.mark.django_db


def test_a_run_is_an_operation_whose_task_is_sent_after_the_commit(
    sent_tasks: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        run = make_run()

    assert run.operation.kind == "planning.run-scenario"
    assert sent_tasks == [("controlplane.planning.tasks.run_scenario", (str(run.operation_id),))]


def test_a_finished_run_has_a_whole_result_with_its_model_error() -> None:
    run = make_finished_run()

    assert run.state == Operation.State.SUCCEEDED
    assert run.result is not None
    assert run.result["pools"][0]["verdict"] == "keep"
    assert run.error_band == run.result["error"]
    assert run.operation.progress_done == run.operation.progress_total > 0
    (advice,) = Advice.objects.filter(run=run)
    assert advice.pool is None
    assert advice.verdict == "keep"


def test_delivering_the_task_twice_gives_one_result() -> None:
    run = make_run()

    tasks.run_scenario(str(run.operation_id))
    first = ScenarioRun.objects.get(pk=run.pk)
    tasks.run_scenario(str(run.operation_id))

    again = ScenarioRun.objects.get(pk=run.pk)
    assert again.updated_at == first.updated_at
    assert Advice.objects.filter(run=run).count() == 1


def test_equal_seeds_give_equal_results() -> None:
    scenario = make_scenario()

    assert make_finished_run(scenario).result == make_finished_run(scenario).result


def test_a_pending_run_ends_at_once_and_its_task_does_nothing() -> None:
    olga = make_olga()
    run = make_run(actor=olga)

    services.cancel_run(run_id=run.pk, actor=olga)
    services.work_on_run(operation_id=run.operation_id)

    run.refresh_from_db()
    assert run.state == Operation.State.CANCELLED
    assert run.result is None


def test_a_running_run_that_is_cancelled_leaves_no_half_result(monkeypatch: Any) -> None:
    olga = make_olga()
    run = make_run(actor=olga)
    monkeypatch.setattr(services.runs, "LOOK_EVERY_SECONDS", 0.0)
    # Somebody else asks while the work goes on: before its first look.
    Operation.objects.filter(pk=run.operation_id).update(cancel_requested_at=timezone.now())

    services.work_on_run(operation_id=run.operation_id)

    run.refresh_from_db()
    assert run.state == Operation.State.CANCELLED
    assert run.result is None
    assert run.error_band is None
    assert not Advice.objects.filter(run=run).exists()


def test_cancelling_twice_changes_nothing_and_an_ended_run_cannot_be() -> None:
    olga = make_olga()
    run = make_run(actor=olga)
    operation = operations.claim(run.operation_id)
    assert operation is not None

    first = services.cancel_run(run_id=run.pk, actor=olga).operation.cancel_requested_at
    second = services.cancel_run(run_id=run.pk, actor=olga).operation.cancel_requested_at
    operations.cancelled(operation)

    assert first == second
    with pytest.raises(RunEndedError):
        services.cancel_run(run_id=run.pk, actor=olga)


def test_an_attempt_that_lost_its_claim_writes_nothing(monkeypatch: Any) -> None:
    run = make_run()
    claimed = operations.claim(run.operation_id)
    assert claimed is not None
    # The first attempt sleeps; another takes over and ends the work.
    Operation.objects.filter(pk=run.operation_id).update(claimed_until=timezone.now())
    services.work_on_run(operation_id=run.operation_id)
    before = ScenarioRun.objects.get(pk=run.pk).updated_at
    monkeypatch.setattr(operations, "claim", lambda _operation_id, **_bounds: claimed)

    services.work_on_run(operation_id=run.operation_id)

    assert ScenarioRun.objects.get(pk=run.pk).updated_at == before
    assert Advice.objects.filter(run=run).count() == 1


def test_a_run_that_meets_a_fault_says_so() -> None:
    run = make_run()
    ScenarioRun.objects.filter(pk=run.pk).update(problem={"groups": []})

    services.work_on_run(operation_id=run.operation_id)

    run.refresh_from_db()
    assert run.state == Operation.State.FAILED
    assert run.operation.error["detail"]


def test_a_run_that_kills_its_workers_ends_with_the_reason() -> None:
    run = make_run()
    for _ in range(MOST_LOST):
        assert operations.claim(run.operation_id, most_lost=MOST_LOST) is not None
        Operation.objects.filter(pk=run.operation_id).update(claimed_until=timezone.now())

    tasks.run_scenario(str(run.operation_id))

    run.refresh_from_db()
    assert run.state == Operation.State.FAILED
    assert run.operation.error["code"] == "workers-lost"
    assert operations.sweep() == 0


@pytest.mark.django_db(transaction=True)
def test_scenarios_that_start_at_once_share_the_bound() -> None:
    olga = make_olga()
    for _ in range(MOST_OPEN_RUNS - 1):
        make_run(make_scenario(olga), olga)
    left = [make_scenario(olga) for _ in range(4)]

    outcomes = at_the_same_time(
        4, lambda: services.run_scenario(scenario_id=left.pop().pk, actor=olga)
    )

    assert sorted(outcomes) == ["ScenarioRun", *["TooManyRunsError"] * 3]


def test_no_more_runs_than_the_machine_bears() -> None:
    olga = make_olga()
    scenario = make_scenario(olga)
    for _ in range(MOST_OPEN_RUNS):
        make_run(scenario, olga)

    with pytest.raises(TooManyRunsError, match="8 runs have not ended"):
        make_run(scenario, olga)


def test_advice_from_the_fleet_names_its_pool() -> None:
    olga = make_olga()
    pool, _node = make_serving_fleet(both=2)
    question = FleetQuestion(pool_id=pool.pk, traffic=TRAFFIC)
    scenario = services.create_from_fleet(name="fleet", question=question, actor=olga)

    run = make_finished_run(scenario)

    (advice,) = Advice.objects.filter(run=run)
    assert advice.pool == pool
    assert advice.members == scenario.members


def test_a_tenant_runs_nothing() -> None:
    scenario = make_scenario()

    with pytest.raises(NotPermittedError):
        services.run_scenario(scenario_id=scenario.pk, actor=make_ben())
