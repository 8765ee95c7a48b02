"""Deadlines of one length."""

from routing.simulator.clock import Clock
from routing.simulator.patience import Patience


def test_only_what_is_open_at_its_time_has_missed_it() -> None:
    clock, still_open, told = Clock(), {1, 2, 3}, []
    patience = Patience(clock, 5.0, lambda *missed: told.append(missed), still_open=still_open)
    patience.start(1, 1)
    clock.at(1.0, lambda now: patience.start(2, 4))
    clock.at(2.0, lambda now: patience.start(3, 1))
    clock.at(3.0, lambda now: still_open.discard(1))

    clock.run()

    assert told == [(2, 4, 6.0), (3, 1, 7.0)]


def test_one_that_is_set_while_another_is_missed_has_its_whole_time() -> None:
    clock, told = Clock(), []

    def missed(number: int, attempt: int, now: float) -> None:
        told.append((attempt, now))
        if attempt < 3:
            patience.start(number, attempt + 1)

    patience = Patience(clock, 2.0, missed, still_open={7})
    patience.start(7, 1)
    clock.run()

    assert told == [(1, 2.0), (2, 4.0), (3, 6.0)]


def test_finished_requests_leave_nothing_behind() -> None:
    clock, still_open = Clock(), set()
    patience = Patience(clock, 300.0, lambda *missed: None, still_open=still_open)
    for number in range(1000):
        still_open.add(number)
        patience.start(number, 1)
        still_open.discard(number)

    still_open.add(1000)
    patience.start(1000, 1)

    assert len(patience._due) == 1


def test_one_that_asks_for_longer_holds_up_nobody_and_gets_its_time() -> None:
    clock, told = Clock(), []
    patience = Patience(clock, 5.0, lambda *missed: told.append(missed), still_open={1, 2, 3})
    patience.start(1, 1, longer=2048.0)
    clock.at(1.0, lambda now: patience.start(2, 1))
    clock.at(2.0, lambda now: patience.start(3, 1, longer=1.0))

    clock.run()

    assert told == [(2, 1, 6.0), (3, 1, 8.0), (1, 1, 2053.0)]


def test_finished_requests_behind_an_open_one_leave_little() -> None:
    clock, still_open = Clock(), {-1}
    patience = Patience(clock, 5.0, lambda *missed: None, still_open=still_open)
    patience.start(-1, 1)
    for number in range(1000):
        still_open.add(number)
        patience.start(number, 1, longer=2048.0)
        still_open.discard(number)

    assert len(patience._due) < 100
