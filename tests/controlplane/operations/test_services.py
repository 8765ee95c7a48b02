"""Life of an operation."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations import services
from controlplane.operations.errors import (
    OperationEndedError,
    OperationLostError,
    OperationNotFailedError,
)
from controlplane.operations.models import Operation, OutboxEvent
from tests.factories import make_ben, make_olga, make_tenant
from tests.racing import at_the_same_time

pytestmark = pytest.mark.django_db
TASK = "operations.tasks.sweep"


def make_operation(**overrides: Any) -> Operation:
    """A pending operation of two steps."""
    defaults = {"kind": "test", "subject": None, "task": TASK, "actor": None, "steps": ["a", "b"]}
    return services.start(**defaults | overrides)


def claimed(**overrides: Any) -> Operation:
    """A running operation."""
    operation = services.claim(make_operation(**overrides).pk)
    assert operation is not None
    return operation


def test_the_row_exists_before_the_task_is_sent(
    sent_tasks: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        operation = make_operation(subject=make_tenant(slug="hanbit"))
        assert sent_tasks == []

    assert sent_tasks == [("controlplane.operations.tasks.sweep", (str(operation.pk),))]
    assert operation.state == "pending"
    assert [step.name for step in operation.steps.all()] == ["a", "b"]
    assert (operation.subject_type, operation.subject_repr) == ("tenancy.tenant", "hanbit")


def test_a_task_that_does_not_exist_fails_the_caller() -> None:
    with pytest.raises(ImportError):
        make_operation(task="operations.tasks.swep")

    assert not Operation.objects.exists()


def test_an_operation_of_a_tenants_row_belongs_to_the_tenant() -> None:
    tenant = make_tenant()

    assert make_operation(subject=tenant).tenant == tenant


@pytest.mark.django_db(transaction=True)
def test_of_six_workers_one_claims() -> None:
    operation = make_operation()

    outcomes = at_the_same_time(6, services.claim, operation_id=operation.pk)

    assert outcomes == ["NoneType"] * 5 + ["Operation"]


def test_a_running_operation_is_not_claimed_again_while_its_worker_lives() -> None:
    operation = claimed()

    assert services.claim(operation.pk) is None


def test_a_dead_workers_operation_is_claimed_by_the_next() -> None:
    operation = claimed()

    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        successor = services.claim(operation.pk)

    assert successor is not None
    assert successor.attempt == operation.attempt + 1


def test_what_kills_its_workers_is_given_up_and_says_why() -> None:
    operation = claimed()
    later = timezone.now()
    for _ in range(2):
        later += timedelta(seconds=61)
        with time_machine.travel(later):
            assert services.claim(operation.pk, most_lost=3) is not None

    with time_machine.travel(later + timedelta(seconds=61)):
        assert services.claim(operation.pk, most_lost=3) is None

    operation.refresh_from_db()
    assert operation.state == "failed"
    assert operation.error["code"] == "workers-lost"
    assert operation.error["detail"].startswith("3 workers in a row ended")


def test_a_retry_counts_lost_workers_anew() -> None:
    operation = claimed()
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert services.claim(operation.pk, most_lost=1) is None
    services.retry(operation_id=operation.pk, actor=make_olga())

    assert services.claim(operation.pk, most_lost=1) is not None


def test_a_worker_presumed_dead_cannot_write_any_more() -> None:
    operation = claimed()
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        services.claim(operation.pk)

    for write in (
        lambda: services.succeed(operation),
        lambda: services.fail(operation, RuntimeError("x")),
        lambda: services.renew(operation),
        lambda: services.progress(operation, done=1),
    ):
        with pytest.raises(OperationLostError):
            write()

    assert Operation.objects.get().state == "running"


def test_steps_count_as_progress() -> None:
    operation = claimed()

    with services.step(operation, "a") as step:
        step.detail = "2 namespaces"
    services.skip_step(operation, "b", reason="no cluster")

    operation.refresh_from_db()
    states = list(operation.steps.values_list("state", "detail", "attempt"))
    assert states == [("succeeded", "2 namespaces", 1), ("skipped", "no cluster", 0)]
    assert (operation.progress_done, operation.progress_total) == (2, 2)


def test_a_step_that_fails_keeps_its_sentence_and_lets_the_error_go_on() -> None:
    operation = claimed()

    with pytest.raises(ValueError, match="no route"), services.step(operation, "a"):
        raise ValueError("no route")

    step = operation.steps.get(name="a")
    assert (step.state, step.detail) == ("failed", "ValueError: no route")


def test_what_the_database_says_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    operation, secret = claimed(), "Key (serial)=(A17) already exists"

    with pytest.raises(IntegrityError), services.step(operation, "a"):
        raise IntegrityError(secret)
    services.fail(operation, IntegrityError(secret))

    operation.refresh_from_db()
    step = operation.steps.get(name="a")
    assert step.detail == "IntegrityError: the log of the worker says more."
    assert operation.error["detail"] == step.detail
    assert caplog.text.count(secret) >= 2


def test_the_hint_of_a_failure_is_filled_in() -> None:
    operation = claimed()

    services.fail(operation, NotPermittedError(action="x.y", roles="finance"))

    operation.refresh_from_db()
    assert operation.error["hint"] == "Roles that have it: finance."


def test_the_end_is_heard_and_final() -> None:
    operation = claimed(subject=make_tenant())

    services.succeed(operation, result={"n": 1})

    operation.refresh_from_db()
    assert (operation.state, operation.result) == ("succeeded", {"n": 1})
    assert OutboxEvent.objects.get().type == "consort.operation.succeeded"
    assert services.claim(operation.pk) is None


def test_a_failure_is_a_problem_document() -> None:
    operation = claimed()
    error = OperationEndedError(operation="x", state=Operation.State.FAILED)

    services.fail(operation, error)

    operation.refresh_from_db()
    assert operation.error["code"] == "operation-ended"
    assert operation.error["detail"] == "Operation x is failed, so it cannot be cancelled."


def test_a_pending_operation_is_cancelled_at_once() -> None:
    operation, olga = make_operation(), make_olga()

    services.request_cancel(operation_id=operation.pk, actor=olga, reason="wrong node")

    operation.refresh_from_db()
    assert operation.state == "cancelled"
    assert services.claim(operation.pk) is None
    assert AuditEntry.objects.get(action="operation.cancel").reason == "wrong node"


def test_a_running_operation_learns_that_it_shall_end() -> None:
    operation, olga = claimed(), make_olga()

    services.request_cancel(operation_id=operation.pk, actor=olga)
    services.request_cancel(operation_id=operation.pk, actor=olga)

    assert services.is_cancel_requested(operation)
    services.cancelled(operation)
    with pytest.raises(OperationEndedError, match="is cancelled"):
        services.request_cancel(operation_id=operation.pk, actor=olga)
    assert AuditEntry.objects.filter(action="operation.cancel").count() == 1


def test_a_failed_operation_is_retried_where_it_stopped(
    sent_tasks: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    operation, olga = claimed(), make_olga()
    with services.step(operation, "a"):
        pass
    services.fail(operation, RuntimeError("x"))

    with django_capture_on_commit_callbacks(execute=True):
        services.retry(operation_id=operation.pk, actor=olga)

    operation.refresh_from_db()
    assert (operation.state, operation.error, operation.finished_at) == ("pending", None, None)
    assert list(operation.steps.values_list("state", flat=True)) == ["succeeded", "pending"]
    assert sent_tasks[-1][1] == (str(operation.pk),)


def test_what_did_not_fail_is_not_retried() -> None:
    with pytest.raises(OperationNotFailedError):
        services.retry(operation_id=make_operation().pk, actor=make_olga())


def test_a_stranger_may_neither_cancel_nor_retry() -> None:
    operation = make_operation()

    for change in (services.request_cancel, services.retry):
        with pytest.raises(NotPermittedError):
            change(operation_id=operation.pk, actor=make_ben())


@pytest.mark.parametrize(
    ("seconds", "state", "sent"),
    [(29, "pending", 0), (31, "pending", 1), (31, "running", 0), (61, "running", 1),
     (600, "succeeded", 0)],
)  # fmt: skip
def test_the_sweep_sends_again_what_was_lost(
    seconds: int, state: str, sent: int, sent_tasks: list[Any],
    django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    operation = make_operation()
    if state != "pending":
        operation = services.claim(operation.pk)
    if state == "succeeded":
        services.succeed(operation)

    with (
        time_machine.travel(timezone.now() + timedelta(seconds=seconds)),
        django_capture_on_commit_callbacks(execute=True),
    ):
        first, second = services.sweep(), services.sweep()

    assert (first, second) == (sent, 0)
    assert len(sent_tasks) == sent


def test_the_database_refuses_an_end_without_a_time() -> None:
    operation = make_operation()

    with pytest.raises(IntegrityError, match="finished_at_iff_ended"), transaction.atomic():
        Operation.objects.filter(pk=operation.pk).update(state="succeeded")
