"""What people decide about plans: four eyes, freshness, one at a time."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import Operation
from controlplane.serving import services
from controlplane.serving.errors import (
    OwnPlanError,
    PlanBlockedError,
    PlanExpiredError,
    PlanStaleError,
    PlanStateError,
    PoolBusyError,
    RollbackTooLateError,
)
from controlplane.serving.models import Approval, ChangePlan, Wave
from controlplane.tenancy.models import Role as PersonRole
from tests.controlplane.serving.factories import (
    accelerators_of,
    make_applying,
    make_approved,
    make_approver,
    make_assigned,
    make_draft,
    make_fleet_node,
    make_pool,
    make_proposed,
)
from tests.factories import make_olga, make_user
from tests.racing import at_the_same_time

pytestmark = pytest.mark.django_db


def test_another_person_approves_and_the_audit_says_so() -> None:
    plan, anders = make_proposed(make_pool(), make_fleet_node()), make_approver()

    plan = services.approve_plan(plan_id=plan.pk, actor=anders, comment="looks right")

    assert plan.state == "approved"
    approval = Approval.objects.get(plan=plan)
    assert (approval.approver, approval.fingerprint) == (anders, plan.fingerprint)
    assert AuditEntry.objects.filter(action="changeplan.approve", actor=anders).exists()


def test_nobody_approves_or_rejects_their_own_plan_whatever_their_roles() -> None:
    both = make_user(None, PersonRole.ROLE_ASSIGNER, PersonRole.APPROVER)
    plan = make_proposed(make_pool(), make_fleet_node(), author=both)

    with pytest.raises(OwnPlanError, match="nobody approves their own plan"):
        services.approve_plan(plan_id=plan.pk, actor=both)
    with pytest.raises(OwnPlanError):
        services.reject_plan(plan_id=plan.pk, actor=both, reason="x")


def test_an_operator_without_the_role_may_not_approve() -> None:
    plan = make_proposed(make_pool(), make_fleet_node())

    with pytest.raises(NotPermittedError):
        services.approve_plan(plan_id=plan.pk, actor=make_olga())


@pytest.mark.django_db(transaction=True)
def test_of_six_approvers_at_once_one_approves() -> None:
    plan, anders = make_proposed(make_pool(), make_fleet_node()), make_approver()

    outcomes = at_the_same_time(6, services.approve_plan, plan_id=plan.pk, actor=anders)

    assert outcomes == ["ChangePlan"] + ["PlanStateError"] * 5
    assert Approval.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_six_clicks_one_applies() -> None:
    plan = make_approved(make_pool(), make_fleet_node())

    outcomes = at_the_same_time(6, services.apply_plan, plan_id=plan.pk, actor=plan.author)

    assert outcomes == ["ChangePlan"] + ["PlanStateError"] * 5
    assert Operation.objects.filter(kind="serving.apply-plan").count() == 1


def test_applying_starts_an_operation_with_a_step_for_each_wave(sent_tasks: Any) -> None:
    plan = make_approved(make_pool(), make_fleet_node(), accelerators_per_wave=1)

    plan = services.apply_plan(plan_id=plan.pk, actor=plan.author)

    assert plan.operation is not None
    names = list(plan.operation.steps.values_list("name", flat=True))
    assert (plan.state, names) == ("applying", ["wave 1", "wave 2"])


def test_a_plan_for_another_state_is_stale_and_says_what_differs() -> None:
    pool, node = make_pool(), make_fleet_node()
    plan = make_approved(pool, node)
    accelerator = accelerators_of(node)[0]
    accelerator.state = "cordoned"
    accelerator.save()

    with pytest.raises(PlanStaleError, match="hardware"):
        services.apply_plan(plan_id=plan.pk, actor=plan.author)


def test_a_plan_is_stale_once_the_ledger_of_its_pool_moved() -> None:
    pool = make_pool()
    plan = make_approved(pool, make_fleet_node())
    make_assigned(pool, make_fleet_node())

    with pytest.raises(PlanStaleError, match="ledger"):
        services.apply_plan(plan_id=plan.pk, actor=plan.author)


def test_an_expired_plan_is_refused_with_the_time() -> None:
    plan = make_proposed(make_pool(), make_fleet_node())
    ChangePlan.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(PlanExpiredError, match="expired at 20"):
        services.approve_plan(plan_id=plan.pk, actor=make_approver())


def test_a_blocked_plan_cannot_be_proposed() -> None:
    pool, node = make_pool(), make_fleet_node()
    make_assigned(pool, node)
    plan = make_draft(pool, node)

    with pytest.raises(PlanBlockedError, match="has this role already"):
        services.propose_plan(plan_id=plan.pk, actor=plan.author)


def test_one_plan_of_a_pool_is_applied_at_a_time() -> None:
    pool = make_pool()
    first, second = make_applying(pool, make_fleet_node()), make_approved(pool, make_fleet_node())

    with pytest.raises(PoolBusyError, match=first.number):
        services.apply_plan(plan_id=second.pk, actor=second.author)


def test_a_rejected_plan_is_cancelled_with_the_reason() -> None:
    plan = make_proposed(make_pool(), make_fleet_node())

    plan = services.reject_plan(plan_id=plan.pk, actor=make_approver(), reason="not in May")

    assert (plan.state, plan.outcome) == ("cancelled", "Rejected: not in May")
    with pytest.raises(PlanStateError, match="cancelled"):
        services.approve_plan(plan_id=plan.pk, actor=make_approver())


def test_pausing_twice_and_resuming_twice_changes_nothing_more() -> None:
    plan = make_applying(make_pool(), make_fleet_node())

    first = services.pause_plan(plan_id=plan.pk, actor=plan.author)
    second = services.pause_plan(plan_id=plan.pk, actor=plan.author)
    services.resume_plan(plan_id=plan.pk, actor=plan.author)
    resumed = services.resume_plan(plan_id=plan.pk, actor=plan.author)

    assert first.paused_at == second.paused_at is not None
    assert resumed.paused_at is None


def test_cancelling_before_the_start_ends_the_plan_and_during_it_drops_later_waves() -> None:
    waiting, running = (
        make_approved(make_pool(), make_fleet_node()),
        make_applying(make_pool(), make_fleet_node()),
    )

    waiting = services.cancel_plan(plan_id=waiting.pk, actor=waiting.author, reason="later")
    running = services.cancel_plan(plan_id=running.pk, actor=running.author)

    assert (waiting.state, waiting.outcome) == ("cancelled", "Cancelled: later")
    assert (running.state, running.cancelling) == ("applying", True)


def test_a_rollback_skips_waves_not_begun_and_turns_the_others_around() -> None:
    plan = make_applying(make_pool(), make_fleet_node(), accelerators_per_wave=1)
    plan.waves.filter(position=1).update(state=Wave.State.RUNNING, step=Wave.Step.READY)

    plan = services.rollback_plan(plan_id=plan.pk, actor=plan.author, reason="slow")

    first, second = plan.waves.all()
    assert (first.state, first.step, first.backwards) == ("pending", "drain", True)
    assert (second.state, second.backwards) == ("skipped", False)
    assert (plan.rolling_back, plan.outcome) == (True, "Rolled back by hand: slow")


def test_after_seven_days_or_another_change_it_is_too_late_to_roll_back() -> None:
    pool, node = make_pool(), make_fleet_node()
    plan = make_applying(pool, node, role="decode")
    now = timezone.now()
    ChangePlan.objects.filter(pk=plan.pk).update(state="succeeded", ended_at=now)
    make_assigned(pool, node, role="both")

    with pytest.raises(RollbackTooLateError, match="has another role since"):
        services.rollback_plan(plan_id=plan.pk, actor=plan.author, reason="x")

    ChangePlan.objects.filter(pk=plan.pk).update(ended_at=now - timedelta(days=8))
    with pytest.raises(RollbackTooLateError, match="seven days"):
        services.rollback_plan(plan_id=plan.pk, actor=plan.author, reason="x")
