"""Scenarios: stated or from the fleet as it is; runs keep what they ran."""

import pytest
from django.core.exceptions import ValidationError

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import OutboxEvent
from controlplane.planning import services
from controlplane.planning.errors import (
    FleetEmptyError,
    ScenarioInvalidError,
    ScenarioRetiredError,
)
from controlplane.planning.models import Scenario
from controlplane.planning.services import FleetQuestion
from controlplane.tenancy.models import Role
from tests.controlplane.planning.rows import (
    TRAFFIC,
    a_problem,
    make_run,
    make_scenario,
    make_serving_fleet,
)
from tests.controlplane.serving.factories import make_fleet_node, make_pool
from tests.factories import make_ben, make_olga, make_user

pytestmark = pytest.mark.django_db


def test_a_scenario_is_stored_audited_and_told() -> None:
    row = make_scenario(name="evening peak")

    assert AuditEntry.objects.filter(action="scenario.create", object_id=str(row.pk)).exists()
    assert OutboxEvent.objects.filter(type="consort.scenario.created").exists()


def test_a_problem_that_cannot_be_planned_is_refused_by_its_member() -> None:
    with pytest.raises(ScenarioInvalidError, match="rate_qps"):
        make_scenario(problem=a_problem() | {"demands": [{"model": "m", "traffic": {}}]})
    assert not Scenario.objects.exists()


def test_two_live_scenarios_need_two_names_and_a_retired_one_frees_its_name() -> None:
    olga = make_olga()
    first = make_scenario(olga, name="peak")

    with pytest.raises(ValidationError, match="Another scenario has this name"):
        make_scenario(olga, name="peak")
    services.retire_scenario(scenario_id=first.pk, actor=olga)

    assert make_scenario(olga, name="peak").pk != first.pk


def test_the_fleet_as_it_is_has_the_roles_of_today_and_the_ids_behind_each_group() -> None:
    pool, _node = make_serving_fleet(prefill=2, decode=4, both=0)
    make_fleet_node("intel-gaudi3", accelerators=8)
    question = FleetQuestion(pool_id=pool.pk, traffic=TRAFFIC)

    row = services.create_from_fleet(name="now", question=question, actor=make_olga())

    names = {group["name"] for group in row.problem["groups"]}
    assert names == {"amd-mi325x", "amd-mi325x-2"}
    (demand,) = row.problem["demands"]
    held = [demand["now"][name] for name in sorted(names)]
    assert {(one["prefill"], one["decode"]) for one in held} == {(2, 0), (0, 4)}
    assert sorted(len(ids) for ids in row.members.values()) == [2, 4]
    assert row.origin == Scenario.Origin.FLEET


def test_idle_accelerators_are_taken_when_asked_for() -> None:
    pool, _node = make_serving_fleet()
    make_fleet_node("intel-gaudi3", accelerators=8)
    other, _ = make_serving_fleet(both=3)
    question = FleetQuestion(pool_id=pool.pk, traffic=TRAFFIC, include_idle=True)

    row = services.create_from_fleet(name="with idle", question=question, actor=make_olga())

    found = {group["name"]: group["accelerators_per_node"] for group in row.problem["groups"]}
    assert found == {"amd-mi325x": 2, "intel-gaudi3": 8}
    assert other.slug not in str(row.problem)


def test_a_pool_without_accelerators_has_no_fleet() -> None:
    question = FleetQuestion(pool_id=make_pool().pk, traffic=TRAFFIC)

    with pytest.raises(FleetEmptyError):
        services.create_from_fleet(name="none", question=question, actor=make_olga())


def test_changing_a_scenario_leaves_its_runs_as_they_were() -> None:
    olga = make_olga()
    row = make_scenario(olga)
    run = make_run(row, olga)
    other = a_problem(lengths={"prompt_tokens": 900})

    services.change_scenario(scenario_id=row.pk, actor=olga, problem=other)

    run.refresh_from_db()
    assert run.problem["demands"][0]["traffic"]["prompt_tokens"] == 500


def test_a_retired_scenario_is_neither_changed_nor_run() -> None:
    olga = make_olga()
    row = make_scenario(olga)
    services.retire_scenario(scenario_id=row.pk, actor=olga)
    again = services.retire_scenario(scenario_id=row.pk, actor=olga)

    assert again.retired_at is not None
    with pytest.raises(ScenarioRetiredError):
        services.change_scenario(scenario_id=row.pk, actor=olga, name="x")
    with pytest.raises(ScenarioRetiredError):
        services.run_scenario(scenario_id=row.pk, actor=olga)


@pytest.mark.parametrize("who", ["ben", "readonly"])
def test_who_may_only_look_or_belongs_to_a_tenant_makes_none(who: str) -> None:
    actor = make_ben() if who == "ben" else make_user("reader", Role.READONLY)

    with pytest.raises(NotPermittedError):
        make_scenario(actor)
