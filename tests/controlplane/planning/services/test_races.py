"""Live races: one per person, few at once, begun once, ended with a reason."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations import services as operations
from controlplane.operations.models import Operation
from controlplane.planning import board, selectors, services, tasks
from controlplane.planning.errors import RaceNotRunningError, RaceRateError, TooManyRacesError
from controlplane.planning.models import LEAST_RATE, MOST_RACES, MOST_RATE, LiveRace
from controlplane.tenancy.models import Role
from tests.controlplane.planning.races import Time, make_race
from tests.factories import make_ben, make_olga, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_a_race_is_an_operation_whose_task_is_sent_after_the_commit(
    sent_tasks: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        race = make_race()

    assert sent_tasks == [("controlplane.planning.tasks.run_race", (str(race.operation_id),))]
    assert AuditEntry.objects.filter(action="race.start").count() == 1


def test_two_clicks_start_one_race() -> None:
    olga = make_olga()

    first, second = make_race(actor=olga), make_race(actor=olga)

    assert first == second
    assert LiveRace.objects.count() == Operation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_six_clicks_at_once_start_one_race(at_the_same_time: Any) -> None:
    olga = make_olga()

    outcomes = at_the_same_time(6, services.start_race, actor=olga, rate_qps=2)

    assert outcomes == ["LiveRace"] * 6
    assert LiveRace.objects.count() == 1


def test_no_more_races_run_than_there_are_slots() -> None:
    for _ in range(MOST_RACES):
        make_race()

    with pytest.raises(TooManyRacesError):
        make_race()


def test_a_stopped_race_frees_its_slot_and_a_second_stop_does_nothing() -> None:
    olga = make_olga()
    race = make_race(actor=olga)

    services.stop_race(actor=olga)
    again = services.stop_race(actor=olga)
    race.refresh_from_db()

    assert again is None
    assert (race.end, race.operation.state) == (LiveRace.End.STOPPED, Operation.State.CANCELLED)
    assert selectors.race_slots_taken() == set()


def test_afresh_ends_the_race_that_runs_and_starts_another() -> None:
    olga = make_olga()
    first = make_race(actor=olga)

    second = services.start_race(actor=olga, rate_qps=9, afresh=True)
    first.refresh_from_db()

    assert first.end == LiveRace.End.STOPPED
    assert (second.is_open, second.rate_qps) == (True, 9)


@pytest.mark.parametrize("rate", [0, LEAST_RATE - 0.5, MOST_RATE + 1, float("nan"), float("inf")])
def test_a_rate_out_of_bounds_is_refused(rate: float) -> None:
    olga = make_olga()

    with pytest.raises(RaceRateError):
        services.start_race(actor=olga, rate_qps=rate)


def test_a_rate_needs_a_race_that_runs() -> None:
    with pytest.raises(RaceNotRunningError):
        services.change_rate(actor=make_olga(), rate_qps=5)


def test_people_of_a_tenant_start_and_see_none_and_nobody_sees_another_ones() -> None:
    race, ben = make_race(), make_ben()

    for call in (services.stop_race, lambda actor: make_race(actor=actor)):
        with pytest.raises(NotPermittedError):
            call(actor=ben)
    assert selectors.latest_race(ben) is None
    assert selectors.latest_race(make_olga()) is None
    assert selectors.latest_race(race.created_by) == race


def test_who_may_look_may_not_start_and_is_told_who_may() -> None:
    viewer = make_user("vera", Role.READONLY)

    with pytest.raises(NotPermittedError, match=r"planning\.run_scenario") as refused:
        services.start_race(actor=viewer, rate_qps=2)

    assert Role.ROUTER_ENGINEER.value in refused.value.advice
    assert not LiveRace.objects.exists()


def test_delivered_twice_one_works_and_the_other_returns() -> None:
    race = make_race()
    seen: list[str] = []

    def again(_tick: int) -> None:
        services.work_on_race(operation_id=race.operation_id)
        race.refresh_from_db()
        seen.append(race.end)
        services.stop_race(actor=race.created_by)

    services.work_on_race(operation_id=race.operation_id, driver=Time(again).driver())
    tasks.run_race(str(race.operation_id))

    assert seen == [""]


def test_a_race_whose_worker_was_killed_says_so_and_can_be_started_again() -> None:
    race = make_race()
    assert operations.claim(race.operation_id) is not None
    LiveRace.objects.filter(pk=race.pk).update(begun_at=timezone.now())
    Operation.objects.filter(pk=race.operation_id).update(claimed_until=timezone.now())

    ended = services.end_stranded_races()
    race.refresh_from_db()

    assert ended == 1
    assert (race.end, race.operation.state) == (LiveRace.End.LOST, Operation.State.FAILED)
    assert make_race(actor=race.created_by) != race


def test_a_second_worker_does_not_go_on_with_pools_that_it_has_not() -> None:
    race = make_race()
    assert operations.claim(race.operation_id) is not None
    LiveRace.objects.filter(pk=race.pk).update(begun_at=timezone.now())
    Operation.objects.filter(pk=race.operation_id).update(claimed_until=timezone.now())

    services.work_on_race(operation_id=race.operation_id)
    race.refresh_from_db()

    assert (race.end, board.snapshot_of(race.pk)) == (LiveRace.End.LOST, None)


def test_a_race_that_no_worker_took_ends() -> None:
    race = make_race()
    before = services.end_stranded_races()
    LiveRace.objects.filter(pk=race.pk).update(created_at=timezone.now() - timedelta(minutes=3))

    ended = services.end_stranded_races()
    race.refresh_from_db()

    assert (before, ended, race.end) == (0, 1, LiveRace.End.UNCLAIMED)
    assert race.operation.state == Operation.State.CANCELLED


def test_a_race_that_breaks_is_told() -> None:
    race = make_race()

    def broken(_tick: int) -> None:
        raise RuntimeError("the disk is full")

    services.work_on_race(operation_id=race.operation_id, driver=Time(broken).driver())
    race.refresh_from_db()

    assert race.end == LiveRace.End.FAILED
    assert "the disk is full" in race.operation.error["detail"]


@pytest.mark.parametrize("begun", [True, False])
def test_a_race_whose_operation_was_cancelled_was_stopped_and_not_lost(begun: bool) -> None:
    race = make_race()

    def cancel(_tick: int = 0) -> None:
        operations.request_cancel(operation_id=race.operation_id, actor=race.created_by)

    if begun:
        services.work_on_race(operation_id=race.operation_id, driver=Time(cancel).driver())
    else:
        cancel()
    services.end_stranded_races()
    race.refresh_from_db()

    assert (race.end, race.operation.state) == (LiveRace.End.STOPPED, Operation.State.CANCELLED)


def test_a_race_that_is_stopped_as_its_worker_takes_it_is_cancelled() -> None:
    race = make_race()
    LiveRace.objects.filter(pk=race.pk).update(ended_at=timezone.now(), end=LiveRace.End.STOPPED)
    Operation.objects.filter(pk=race.operation_id).update(cancel_requested_at=timezone.now())

    services.work_on_race(operation_id=race.operation_id)
    race.refresh_from_db()

    assert (race.end, race.operation.state) == (LiveRace.End.STOPPED, Operation.State.CANCELLED)
