"""Life of an operation: start, claim, steps, end; cancel, retry, sweep.

Whoever works names the attempt it claimed in every write, so a worker that was presumed dead and
wakes up again finds out (OperationLostError) instead of writing over its successor.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import Case, F, Model, PositiveIntegerField, Q, When
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import jobs, labels, permissions, request_id
from controlplane.common.errors import DomainError
from controlplane.common.tenants import tenant_id_of
from controlplane.operations import outbox
from controlplane.operations.errors import (
    OperationEndedError,
    OperationLostError,
    OperationNotFailedError,
    WorkersLostError,
)
from controlplane.operations.models import (
    IdempotencyRecord,
    Operation,
    OperationStep,
    OutboxEvent,
)

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

logger = logging.getLogger(__name__)

CLAIM_SECONDS = 60
RESEND_AFTER = timedelta(seconds=30)
SWEEP_LIMIT = 500
KEEP_EVENTS = timedelta(days=30)
DETAIL_LENGTH = 500

State = Operation.State
StepState = OperationStep.State


@transaction.atomic
def start(
    *,
    kind: str,
    subject: Model | None,
    task: str,
    actor: "User | None",
    steps: Sequence[str] = (),
) -> Operation:
    """Write the row and its steps, and send the task with the row's id after the commit.

    `task` is a dotted path; "controlplane." in front may be left out.
    """
    operation = Operation.objects.create(
        kind=kind,
        task=task,
        subject_type=labels.type_label(subject),
        subject_id=labels.key_label(subject),
        subject_repr=labels.text_label(subject),
        tenant_id=tenant_id_of(subject),
        created_by_id=actor.pk if actor is not None else None,
        request_id=request_id.current(),
        progress_total=len(steps),
        sent_at=timezone.now(),
    )
    OperationStep.objects.bulk_create(
        OperationStep(operation=operation, position=position, name=name)
        for position, name in enumerate(steps)
    )
    jobs.after_commit(task, str(operation.pk))
    return operation


def claim(
    operation_id: UUID | str, *, seconds: float = CLAIM_SECONDS, most_lost: int | None = None
) -> Operation | None:
    """Take a pending operation, or a running one whose claim has lapsed; None if neither.

    Of several callers at once one gets it. When `most_lost` workers have died with it, it fails
    with WorkersLostError instead of being handed out once more.
    """
    now = timezone.now()
    if most_lost is not None and _is_given_up(operation_id, most_lost, now):
        return None
    claimable = Q(state=State.PENDING) | Q(state=State.RUNNING, claimed_until__lte=now)
    taken = Operation.objects.filter(claimable, pk=operation_id).update(
        lost=Case(
            When(state=State.RUNNING, then=F("lost") + 1),
            default=F("lost"),
            output_field=PositiveIntegerField(),
        ),
        state=State.RUNNING,
        attempt=F("attempt") + 1,
        claimed_until=now + timedelta(seconds=seconds),
        started_at=now,
        updated_at=now,
    )
    return Operation.objects.get(pk=operation_id) if taken else None


def _is_given_up(operation_id: UUID | str, most_lost: int, now: datetime) -> bool:
    lapsed = Operation.objects.filter(
        pk=operation_id, state=State.RUNNING, claimed_until__lte=now, lost__gte=most_lost - 1
    ).first()
    if lapsed is None:
        return False
    try:
        fail(lapsed, WorkersLostError(lost=lapsed.lost + 1))
    except OperationLostError:
        return False  # Somebody else was faster.
    return True


def renew(operation: Operation, *, seconds: float = CLAIM_SECONDS) -> None:
    """Say that the attempt is alive; raises OperationLostError if it lost its claim."""
    _write(operation, claimed_until=timezone.now() + timedelta(seconds=seconds))


@contextmanager
def step(operation: Operation, name: str) -> Iterator[OperationStep]:
    """Run one step; its end is written with the detail that the block put on it.

    An exception marks the step as failed with its sentence and goes on up. Raises
    OperationLostError if the attempt lost its claim.
    """
    row = operation.steps.get(name=name)
    _begin(operation, row)
    try:
        yield row
    except OperationLostError:
        raise
    except Exception as error:
        if not isinstance(error, DomainError):
            logger.warning("Step %s of operation %s failed", name, operation.pk, exc_info=error)
        _finish(operation, row, StepState.FAILED, detail=_sentence(error))
        raise
    _finish(operation, row, StepState.SUCCEEDED, detail=row.detail)


def skip_step(operation: Operation, name: str, *, reason: str) -> None:
    """Mark a step as not needed."""
    row = operation.steps.get(name=name)
    _finish(operation, row, StepState.SKIPPED, detail=reason)


def progress(
    operation: Operation, *, done: int, total: int | None = None, unit: str | None = None
) -> None:
    """Write how far the work is, and renew the claim; for work that is not counted in steps."""
    changes: dict[str, Any] = {"progress_done": done}
    if total is not None:
        changes["progress_total"] = total
    if unit is not None:
        changes["progress_unit"] = unit
    changes["claimed_until"] = timezone.now() + timedelta(seconds=CLAIM_SECONDS)
    _write(operation, **changes)


def succeed(operation: Operation, *, result: Mapping[str, Any] | None = None) -> None:
    """End well; raises OperationLostError if the attempt lost its claim."""
    _end(operation, State.SUCCEEDED, result=dict(result) if result is not None else None)


def fail(operation: Operation, error: BaseException) -> None:
    """End badly, with a problem document that a person can read."""
    traceback = None if isinstance(error, DomainError) else error
    logger.warning(
        "Operation %s (%s) failed: %s", operation.pk, operation.kind, error, exc_info=traceback
    )
    _end(operation, State.FAILED, error=_problem(error))


def cancelled(operation: Operation) -> None:
    """End because somebody asked for it; the task has undone what it could."""
    _end(operation, State.CANCELLED)


def is_cancel_requested(operation: Operation) -> bool:
    """True once somebody asked; a task looks between two steps."""
    return Operation.objects.filter(pk=operation.pk, cancel_requested_at__isnull=False).exists()


@transaction.atomic
def request_cancel(*, operation_id: UUID, actor: "User", reason: str = "") -> Operation:
    """Ask for the end: a pending operation ends at once, a running one at its next look.

    A second call changes nothing. Raises NotPermittedError or OperationEndedError.
    """
    operation = _locked(operation_id, actor, "operations.cancel_operation")
    if operation.has_ended:
        raise OperationEndedError(operation=str(operation), state=State(operation.state))
    if operation.cancel_requested_at is not None:
        return operation
    ask_to_end(operation)
    audit.record(actor=actor, action="operation.cancel", subject=operation, reason=reason)
    return operation


def ask_to_end(operation: Operation) -> None:
    """End a pending operation, or ask a running one; the caller has checked who and locked it."""
    operation.cancel_requested_at = timezone.now()
    if operation.state == State.PENDING:
        operation.state, operation.finished_at = State.CANCELLED, timezone.now()
    operation.save(update_fields=["cancel_requested_at", "state", "finished_at", "updated_at"])


@transaction.atomic
def retry(*, operation_id: UUID, actor: "User", reason: str = "") -> Operation:
    """Go on at the first step that has not succeeded.

    Raises NotPermittedError or OperationNotFailedError.
    """
    operation = _locked(operation_id, actor, "operations.retry_operation")
    if operation.state not in {State.FAILED, State.CANCELLED}:
        raise OperationNotFailedError(operation=str(operation), state=State(operation.state))
    operation.state, operation.sent_at, operation.lost = State.PENDING, timezone.now(), 0
    operation.finished_at = operation.cancel_requested_at = operation.error = None
    operation.save(
        update_fields=[
            "state", "sent_at", "lost", "finished_at", "cancel_requested_at", "error", "updated_at",
        ]
    )  # fmt: skip
    audit.record(actor=actor, action="operation.retry", subject=operation, reason=reason)
    jobs.after_commit(operation.task, str(operation.pk))
    return operation


def sweep() -> int:
    """Send again what may have been lost: never delivered, or its worker died. Returns how many."""
    now = timezone.now()
    lost = Q(state=State.PENDING) | Q(state=State.RUNNING, claimed_until__lte=now)
    stale = Q(sent_at__isnull=True) | Q(sent_at__lte=now - RESEND_AFTER)
    waiting = Operation.objects.filter(lost, stale).order_by("sent_at", "pk")[:SWEEP_LIMIT]
    sent = 0
    for operation in waiting:
        # The claim on `sent_at` keeps two sweeps from sending the same message twice.
        mine = Operation.objects.filter(pk=operation.pk, sent_at=operation.sent_at)
        if mine.update(sent_at=now):
            jobs.after_commit(operation.task, str(operation.pk))
            sent += 1
    return sent


def forget_idempotency_keys() -> int:
    """Delete expired records; returns how many."""
    deleted, _per_table = IdempotencyRecord.objects.filter(expires_at__lte=timezone.now()).delete()
    return deleted


def forget_events(*, now: datetime | None = None) -> int:
    """Delete events older than 30 days, heard or not; returns how many."""
    old = OutboxEvent.objects.filter(created_at__lt=(now or timezone.now()) - KEEP_EVENTS)
    deleted, _per_table = old.delete()
    return deleted


def _locked(operation_id: UUID, actor: "User", action: str) -> Operation:
    operation = Operation.objects.select_for_update(no_key=True).get(pk=operation_id)
    permissions.require(actor, action, operation)
    return operation


def _begin(operation: Operation, row: OperationStep) -> None:
    row.state, row.started_at, row.finished_at = StepState.RUNNING, timezone.now(), None
    row.attempt, row.detail = row.attempt + 1, ""
    with transaction.atomic():
        renew(operation)
        row.save(update_fields=["state", "started_at", "finished_at", "attempt", "detail"])


def _finish(operation: Operation, row: OperationStep, state: str, *, detail: str) -> None:
    row.state, row.finished_at, row.detail = state, timezone.now(), detail[:DETAIL_LENGTH]
    with transaction.atomic():
        renew(operation)
        row.save(update_fields=["state", "finished_at", "detail"])
        over = operation.steps.filter(state__in=[StepState.SUCCEEDED, StepState.SKIPPED])
        _write(operation, progress_done=over.count())


@transaction.atomic
def _end(operation: Operation, state: str, **outcome: Any) -> None:
    _write(operation, state=state, finished_at=timezone.now(), claimed_until=None, **outcome)
    if state != State.CANCELLED:
        outbox.emit(f"consort.operation.{state}", subject=operation, data={"kind": operation.kind})


def _write(operation: Operation, **changes: Any) -> None:
    """Change the row if this attempt still has it, and the object with it."""
    mine = Operation.objects.filter(pk=operation.pk, attempt=operation.attempt, state=State.RUNNING)
    if not mine.update(**changes, updated_at=timezone.now()):
        raise OperationLostError(operation=str(operation), attempt=operation.attempt)
    for name, value in changes.items():
        setattr(operation, name, value)


def _problem(error: BaseException) -> dict[str, Any]:
    if isinstance(error, DomainError):
        return {
            "code": error.code, "title": str(error.title), "status": int(error.status),
            "detail": str(error), "hint": error.advice,
        }  # fmt: skip
    return {"code": "internal-error", "status": 500, "detail": _sentence(error)}


def _sentence(error: BaseException) -> str:
    if isinstance(error, DomainError):
        return str(error)[:DETAIL_LENGTH]
    if isinstance(error, DatabaseError):
        # Its text is SQL and values of rows, which whoever watches the operation may not see.
        return f"{type(error).__name__}: the log of the worker says more."
    return f"{type(error).__name__}: {error}"[:DETAIL_LENGTH]
