"""The worker's loop: figures, the slider, ends, and how much of a core it takes."""

import pytest

from controlplane.operations.models import Operation
from controlplane.planning import board, services
from controlplane.planning.models import LiveRace
from controlplane.planning.services.driving import LONGEST_SECONDS, Driver
from tests.controlplane.planning.races import Time, make_race, nothing
from tests.factories import make_olga

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_a_race_shows_figures_and_follows_the_slider_until_it_is_stopped() -> None:
    olga = make_olga()
    race = make_race(actor=olga, rate_qps=2)
    rates: list[float] = []

    def people(tick: int) -> None:
        snapshot = board.snapshot_of(race.pk)
        assert snapshot is not None
        rates.append(snapshot.view.rate_qps)
        if tick == 2:
            services.change_rate(actor=olga, rate_qps=7)
        if tick == 4:
            services.stop_race(actor=olga)

    services.work_on_race(operation_id=race.operation_id, driver=Time(people).driver())
    race.refresh_from_db()
    last = board.snapshot_of(race.pk)

    assert rates == [2, 2, 7, 7]
    assert last is not None
    assert last.view.at == pytest.approx(4 * 2.0)
    assert (race.end, race.operation.state) == (LiveRace.End.STOPPED, Operation.State.CANCELLED)


def test_a_slow_worker_simulates_less_and_is_not_late() -> None:
    """Each look at the clock costs a tick, so that nothing fits between two of them."""
    race = make_race()
    time = Time(nothing)

    def look() -> float:
        time.pause(0.0)
        if time.ticks == 20:
            services.stop_race(actor=race.created_by)
        return time.now

    driver = Driver(clock=look, pause=lambda _seconds: None)
    services.work_on_race(operation_id=race.operation_id, driver=driver)
    last = board.snapshot_of(race.pk)

    assert last is not None
    assert last.view.at < 0.5 * time.now
    assert last.pace < 1.0


def test_a_race_that_nobody_watches_ends() -> None:
    race = make_race()

    def forget(tick: int) -> None:
        board.cache.delete(f"live-race:{race.pk}:viewers")

    services.work_on_race(operation_id=race.operation_id, driver=Time(forget).driver())
    race.refresh_from_db()

    assert race.end == LiveRace.End.UNWATCHED
    assert race.operation.state == Operation.State.SUCCEEDED


def test_a_race_ends_after_half_an_hour_with_a_viewer() -> None:
    race = make_race()
    time = Time(nothing, step=LONGEST_SECONDS / 3)

    services.work_on_race(operation_id=race.operation_id, driver=time.driver())
    race.refresh_from_db()

    assert race.end == LiveRace.End.TIME
    assert time.ticks == 3


def test_a_worker_that_lost_its_claim_leaves_the_race_to_its_successor() -> None:
    race = make_race()

    def taken(_tick: int) -> None:
        Operation.objects.filter(pk=race.operation_id).update(attempt=7)

    time = Time(taken, step=4.0)
    services.work_on_race(operation_id=race.operation_id, driver=time.driver())
    race.refresh_from_db()

    assert race.is_open
    assert time.ticks == 1
