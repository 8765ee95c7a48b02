"""Live races: start, rate, stop, and the work in between.

A race is an operation whose worker keeps two simulated pools in its memory. They cannot be handed
on, so a race is begun once: whoever claims it a second time ends it as lost. The slots of a
race are unique rows, which bounds how many run, and one person has one at most.
"""

import logging
import math
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import services as operations
from controlplane.operations.errors import OperationLostError
from controlplane.operations.models import Operation
from controlplane.planning import selectors
from controlplane.planning.errors import (
    RaceLostError,
    RaceNotRunningError,
    RaceRateError,
    TooManyRacesError,
)
from controlplane.planning.models import LEAST_RATE, MOST_RACES, MOST_RATE, LiveRace
from controlplane.planning.services.driving import CLAIM_SECONDS, LONGEST_SECONDS, Driver

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

__all__ = ["LONGEST_SECONDS"]

logger = logging.getLogger(__name__)

UNCLAIMED_AFTER = timedelta(minutes=2)
"""A race that no worker took in this time ends; somebody who still waits starts it again."""

End = LiveRace.End


def start_race(*, actor: "User", rate_qps: float, afresh: bool = False) -> LiveRace:
    """Start a race, or give the one that runs already; `afresh` ends that one first.

    It takes a worker as a run does, and the same permission; whoever has one moves and stops it.
    Raises NotPermittedError, RaceRateError or TooManyRacesError.
    """
    permissions.require(actor, "planning.run_scenario")
    _check(rate_qps)
    if afresh:
        stop_race(actor=actor)
    # A slot that another caller took in the meantime is refused by the database; look again.
    for _attempt in range(MOST_RACES + 1):
        running = _open_race(actor)
        if running is not None:
            return running
        free = set(range(1, MOST_RACES + 1)) - selectors.race_slots_taken()
        if not free:
            break
        try:
            return _create(actor, rate_qps, slot=min(free))
        except IntegrityError:
            continue
    raise TooManyRacesError(allowed=MOST_RACES)


def change_rate(*, actor: "User", rate_qps: float) -> LiveRace:
    """Send at another rate from the next look of the worker on.

    It is not audited: a slider moves many times a minute, and nothing but a simulation hears of it.
    Raises NotPermittedError, RaceRateError or RaceNotRunningError.
    """
    permissions.require(actor, "planning.view_scenario")
    _check(rate_qps)
    mine = LiveRace.objects.filter(created_by=actor, ended_at__isnull=True)
    if not mine.update(rate_qps=rate_qps, updated_at=timezone.now()):
        raise RaceNotRunningError
    return mine.get()


@transaction.atomic
def stop_race(*, actor: "User") -> LiveRace | None:
    """End the race of a person; None if there is none, so that a second click does no harm."""
    permissions.require(actor, "planning.view_scenario")
    race = _open_race(actor)
    if race is None:
        return None
    # The operation first, as its worker does; else each could wait for the row of the other.
    operation = Operation.objects.select_for_update(no_key=True).get(pk=race.operation_id)
    if not _end(race, End.STOPPED):
        return None
    if not operation.has_ended:
        operations.ask_to_end(operation)
    audit.record(actor=actor, action="race.stop", subject=race)
    return race


def work_on_race(*, operation_id: UUID, driver: Driver | None = None) -> None:
    """Simulate a race until it ends; delivered twice, one works and the other returns."""
    operation = operations.claim(operation_id, seconds=CLAIM_SECONDS)
    if operation is None:
        return
    race = LiveRace.objects.get(operation=operation)
    begun = LiveRace.objects.filter(pk=race.pk, begun_at__isnull=True, ended_at__isnull=True)
    if not begun.update(begun_at=timezone.now(), updated_at=timezone.now()):
        if operation.cancel_requested_at is None:
            _lose(race, operation)
        else:
            _stopped(race, operation)
        return
    try:
        why = (driver or Driver()).drive(race, operation)
    except OperationLostError:
        return
    except Exception as error:  # edge to the simulator: whatever it meets, people are told
        logger.exception("Live race %s failed", race.pk)
        with transaction.atomic():
            operations.fail(operation, error)
            _end(race, End.FAILED)
        return
    if why is None:
        _stopped(race, operation)
        return
    with transaction.atomic():
        operations.succeed(operation, result={"end": why})
        _end(race, why)


def end_stranded_races() -> int:
    """End races whose worker is gone, or that nobody took; returns how many."""
    now = timezone.now()
    lost = Q(operation__state=Operation.State.RUNNING, operation__claimed_until__lte=now)
    waits = Q(operation__state=Operation.State.PENDING, created_at__lte=now - UNCLAIMED_AFTER)
    over = Q(operation__state__in=Operation.ENDED)
    rows = LiveRace.objects.filter(lost | waits | over, ended_at__isnull=True)
    return sum(_rescue(race) for race in rows.select_related("operation"))


def _rescue(race: LiveRace) -> bool:
    operation = race.operation
    if operation.state == Operation.State.RUNNING:
        claimed = operations.claim(operation.pk, seconds=CLAIM_SECONDS)
        return claimed is not None and _lose(race, claimed)
    if operation.state == Operation.State.PENDING:
        with transaction.atomic():
            pending = Operation.objects.select_for_update(no_key=True).get(pk=operation.pk)
            if pending.state != Operation.State.PENDING:
                return False
            operations.ask_to_end(pending)
            return _end(race, End.UNCLAIMED)
    is_cancelled = operation.state == Operation.State.CANCELLED
    return _end(race, End.STOPPED if is_cancelled else End.LOST)


@transaction.atomic
def _stopped(race: LiveRace, operation: Operation) -> None:
    """Somebody asked for the end, of the race or of its operation."""
    operations.cancelled(operation)
    _end(race, End.STOPPED)


@transaction.atomic
def _lose(race: LiveRace, operation: Operation) -> bool:
    """The worker before is gone, and the pools with it."""
    operations.fail(operation, RaceLostError())
    return _end(race, End.LOST)


def _end(race: LiveRace, why: str) -> bool:
    """Once: the first reason stands."""
    now = timezone.now()
    open_ones = LiveRace.objects.filter(pk=race.pk, ended_at__isnull=True)
    if not open_ones.update(ended_at=now, end=why, updated_at=now):
        return False
    race.ended_at, race.end = now, why
    return True


@transaction.atomic
def _create(actor: "User", rate_qps: float, *, slot: int) -> LiveRace:
    operation = operations.start(
        kind="planning.live-race", subject=None, task="planning.tasks.run_race", actor=actor
    )
    race = LiveRace.objects.create(
        operation=operation, created_by=actor, slot=slot, rate_qps=rate_qps
    )
    audit.record(actor=actor, action="race.start", subject=race, after={"rate_qps": rate_qps})
    return race


def _open_race(actor: "User") -> LiveRace | None:
    return LiveRace.objects.filter(created_by=actor, ended_at__isnull=True).first()


def _check(rate: float) -> None:
    if not math.isfinite(rate) or not LEAST_RATE <= rate <= MOST_RATE:
        raise RaceRateError(least=LEAST_RATE, most=MOST_RATE, rate=rate)
