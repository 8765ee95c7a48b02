"""Plans as they are computed."""

import uuid

import pytest
from django.core.exceptions import ValidationError

from controlplane.common.permissions import NotPermittedError
from controlplane.serving.errors import (
    AcceleratorsUnknownError,
    PlanEmptyError,
    PlanRoleRefusedError,
    PoolRetiredError,
)
from controlplane.serving.models import ChangePlan, Pool
from tests.controlplane.serving.factories import (
    accelerators_of,
    make_approver,
    make_assigned,
    make_draft,
    make_fleet_node,
    make_pool,
)
from tests.factories import make_ben
from tests.racing import at_the_same_time

pytestmark = pytest.mark.django_db


def test_a_plan_says_what_changes_in_which_waves_and_with_what_effect() -> None:
    pool, amd = make_pool(), make_fleet_node(accelerators=1)
    nvidia = make_fleet_node("nvidia-h100-nvl")
    make_assigned(pool, amd, role="decode")

    plan = make_draft(pool, nvidia, role="prefill", accelerators_per_wave=1)

    assert [(row["slot"], row["from_role"], row["to_role"]) for row in plan.diff] == [
        (0, "", "prefill"),
        (1, "", "prefill"),
    ]
    assert [len(wave.items) for wave in plan.waves.all()] == [1, 1]
    roles = plan.effects["roles"]
    assert roles["before"] == {"prefill": 0, "decode": 1, "both": 0}
    assert roles["after"] == {"prefill": 2, "decode": 1, "both": 0}
    capacity = plan.effects["capacity"]
    assert capacity["before"]["prefill_tokens_per_second"] == 0
    assert capacity["after"]["prefill_tokens_per_second"] > 10_000
    assert capacity["after"]["decode_tokens_per_second"] > 500
    assert plan.number == f"CP-{plan.serial:04d}"


def test_a_capacity_that_is_not_known_is_none_and_the_memory_check_blocks() -> None:
    node = make_fleet_node()
    model = accelerators_of(node)[0].model
    model.bandwidth_bytes_per_second = None
    model.save()

    plan = make_draft(make_pool(), node)

    assert plan.effects["capacity"]["after"]["decode_tokens_per_second"] is None
    checks = {check["name"]: check for check in plan.checks}
    assert checks["memory"]["verdict"] == "block"
    assert "is not known" in checks["memory"]["sentence"]


def test_nothing_selected_is_said_as_such() -> None:
    with pytest.raises(PlanEmptyError, match="0 accelerators"):
        make_draft(make_pool())


def test_accelerators_that_do_not_exist_are_counted() -> None:
    with pytest.raises(AcceleratorsUnknownError, match="2 of the selected"):
        make_draft(make_pool(), node_ids=[uuid.uuid4()], accelerator_ids=[uuid.uuid4()])


def test_an_unknown_role_names_the_known_ones() -> None:
    with pytest.raises(PlanRoleRefusedError, match="'boss'"):
        make_draft(make_pool(), make_fleet_node(), role="boss")


def test_a_retired_pool_takes_no_plan() -> None:
    pool = make_pool()
    Pool.objects.update(state="retired")

    with pytest.raises(PoolRetiredError, match=pool.name):
        make_draft(pool, make_fleet_node())


@pytest.mark.parametrize(
    "wrong",
    [{"floor_share": 1.5}, {"accelerators_per_wave": 0}, {"soak_seconds": -1.0}, {"reason": ""}],
)
def test_a_number_out_of_range_is_refused_and_nothing_is_stored(wrong: dict[str, float]) -> None:
    pool, node = make_pool(), make_fleet_node()

    with pytest.raises(ValidationError) as refused:
        make_draft(pool, node, **wrong)

    assert list(wrong) == list(refused.value.message_dict)
    assert not ChangePlan.objects.exists()


def test_who_may_only_approve_or_belongs_to_a_tenant_makes_no_plan() -> None:
    pool, node = make_pool(), make_fleet_node()

    for person in (make_approver(), make_ben()):
        with pytest.raises(NotPermittedError):
            make_draft(pool, node, author=person)


@pytest.mark.django_db(transaction=True)
def test_numbers_of_plans_made_at_once_are_all_different() -> None:
    pool, node = make_pool(), make_fleet_node()

    outcomes = at_the_same_time(6, lambda: make_draft(pool, node))

    assert outcomes == ["ChangePlan"] * 6
    assert sorted(ChangePlan.objects.values_list("serial", flat=True)) == [1, 2, 3, 4, 5, 6]
