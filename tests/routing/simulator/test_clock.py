"""Virtual time."""

import pytest

from routing.simulator.clock import ARRIVAL, ENGINE, SIGNAL, Clock


def test_calls_come_in_order_of_time_then_priority_then_asking() -> None:
    clock, told = Clock(), []

    def tell(name: str, when: float, priority: int) -> None:
        clock.at(when, lambda now: told.append((name, now)), priority=priority)

    tell("late", 2.0, ENGINE)
    tell("arrival", 1.0, ARRIVAL)
    tell("signal", 1.0, SIGNAL)
    tell("first", 1.0, ENGINE)
    tell("second", 1.0, ENGINE)
    clock.run()

    assert told == [
        ("first", 1.0),
        ("second", 1.0),
        ("signal", 1.0),
        ("arrival", 1.0),
        ("late", 2.0),
    ]


def test_the_past_is_over() -> None:
    clock = Clock()
    clock.run(until=3.0)

    with pytest.raises(ValueError, match="nothing can happen at 2"):
        clock.at(2.0, lambda now: None)


def test_run_stops_at_a_moment_and_that_is_now() -> None:
    clock, told = Clock(), []
    clock.at(1.0, told.append)
    clock.at(5.0, told.append)

    clock.run(until=4.0)

    assert told == [1.0]
    assert (clock.now, clock.next_at) == (4.0, 5.0)


def test_what_a_call_asks_for_now_is_done_now() -> None:
    clock, told = Clock(), []
    clock.at(1.0, lambda now: clock.after(0.0, told.append))

    clock.run()

    assert told == [1.0]
