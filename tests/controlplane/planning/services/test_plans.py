"""A draft from advice: the next step, once, and never more than a draft."""

import pytest

from controlplane.common.permissions import NotPermittedError
from controlplane.planning import services
from controlplane.planning.errors import (
    AdviceNothingToDoError,
    AdviceNotPossibleError,
    AdviceTooWideError,
    AdviceWithoutPoolError,
)
from controlplane.planning.models import Advice
from controlplane.planning.services.plans import reason_of
from controlplane.serving import services as serving
from controlplane.serving.models import ChangePlan
from controlplane.serving.plans import items_of
from controlplane.serving.services.ledger import switch_roles
from controlplane.tenancy.models import Role
from inventory.models import Node
from tests.controlplane.planning.rows import make_advice, make_serving_fleet
from tests.controlplane.serving.factories import accelerators_of
from tests.factories import make_olga, make_user

pytestmark = pytest.mark.django_db


def members_of(node: Node) -> dict[str, list[str]]:
    return {"amd-mi325x": [str(one.pk) for one in accelerators_of(node)]}


def test_the_first_step_is_a_draft_with_its_reason_and_nothing_is_proposed() -> None:
    pool, node = make_serving_fleet(both=4)
    advice = make_advice(pool, members_of(node), wanted={"amd-mi325x": {"prefill": 1, "decode": 3}})

    plan = services.make_change_plan(advice_id=advice.pk, actor=make_olga())

    assert plan.state == ChangePlan.State.DRAFT
    assert plan.role == "prefill"
    assert len(plan.diff) == 1
    assert "simulated, model error 15 %" in plan.reason
    advice.refresh_from_db()
    assert advice.change_plan == plan


def test_a_second_click_gives_the_same_draft() -> None:
    pool, node = make_serving_fleet(both=2)
    advice = make_advice(pool, members_of(node), wanted={"amd-mi325x": {"prefill": 1, "both": 1}})
    olga = make_olga()

    first = services.make_change_plan(advice_id=advice.pk, actor=olga)
    second = services.make_change_plan(advice_id=advice.pk, actor=olga)

    assert first == second
    assert ChangePlan.objects.filter(pool=pool, state=ChangePlan.State.DRAFT).count() == 1


def test_after_the_first_step_comes_the_next_and_then_nothing() -> None:
    pool, node = make_serving_fleet(both=3)
    advice = make_advice(pool, members_of(node), wanted={"amd-mi325x": {"prefill": 1, "decode": 2}})
    olga = make_olga()
    roles = []
    for _ in range(2):
        plan = services.make_change_plan(advice_id=advice.pk, actor=olga)
        roles.append((plan.role, len(plan.diff)))
        switch_roles(plan=plan, items=items_of(plan.diff), reason="test")
        serving.cancel_plan(plan_id=plan.pk, actor=olga)

    assert roles == [("prefill", 1), ("decode", 2)]
    with pytest.raises(AdviceNothingToDoError):
        services.make_change_plan(advice_id=advice.pk, actor=olga)


def test_what_cannot_be_planned_says_why() -> None:
    pool, node = make_serving_fleet(both=2)
    members = members_of(node)
    olga = make_olga()

    def draft(advice: Advice) -> None:
        services.make_change_plan(advice_id=advice.pk, actor=olga)

    with pytest.raises(AdviceWithoutPoolError):
        draft(make_advice(None, members))
    with pytest.raises(AdviceNothingToDoError):
        draft(make_advice(pool, members, verdict="keep"))
    with pytest.raises(AdviceTooWideError, match="engines of 2 accelerators"):
        draft(make_advice(pool, members, width=2))
    with pytest.raises(AdviceNotPossibleError, match="has 2 accelerators"):
        draft(make_advice(pool, members, wanted={"amd-mi325x": {"prefill": 9}}))


def test_whoever_may_not_plan_changes_makes_no_draft() -> None:
    pool, node = make_serving_fleet(both=2)
    advice = make_advice(pool, members_of(node))

    with pytest.raises(NotPermittedError):
        services.make_change_plan(
            advice_id=advice.pk, actor=make_user("engineer", Role.ROUTER_ENGINEER)
        )
    assert not ChangePlan.objects.filter(pool=pool, state="draft").exists()


def test_a_goodput_that_was_not_simulated_is_unknown_and_not_zero() -> None:
    pool, node = make_serving_fleet(both=2)
    advice = make_advice(pool, members_of(node))

    assert "unknown good requests/s" in reason_of(advice)
