"""Blocks whose parent has not come yet."""

import pytest

from routing.core.waiting_events import MAX_WAITING_BLOCKS
from tests.routing.producers.event_fleet import Fleet, prompt, removed, stored


@pytest.mark.lesson("X01")
def test_a_child_waits_for_its_parent() -> None:
    fleet, text = Fleet(), prompt(1, 6)
    fleet.apply(0, stored(text, 4, 6), stored(text, 2, 4))
    assert fleet.hits(text) == [0, 0]

    fleet.apply(0, stored(text, 0, 2))

    assert fleet.hits(text) == [24, 0]
    assert fleet.publisher(0).counts.unknown_parents == 4


@pytest.mark.lesson("X01")
def test_a_block_that_left_while_it_waited_is_not_held_afterwards() -> None:
    fleet, text = Fleet(), prompt(1, 6)
    fleet.apply(0, stored(text, 2, 6), removed(text, 4))

    fleet.apply(0, stored(text, 0, 2))

    assert fleet.hits(text) == [16, 0]


@pytest.mark.lesson("X01")
def test_parents_that_never_come_are_given_up_and_counted() -> None:
    fleet = Fleet(1)
    for number in range(MAX_WAITING_BLOCKS // 10 + 50):
        fleet.apply(0, stored(prompt(number, 12), 2, 12))

    publisher = fleet.publisher(0)

    assert publisher.waiting.blocks <= MAX_WAITING_BLOCKS
    assert publisher.counts.given_up == 500


def test_a_block_that_came_once_more_after_it_left_while_waiting_stays() -> None:
    fleet, text = Fleet(), prompt(1, 3)
    fleet.apply(0, stored(text, 2, 3, medium="CPU"), removed(text, 2))

    fleet.apply(0, stored(text, 0, 3, medium="CPU"))

    assert fleet.hits(text) == [12, 0]
    assert fleet.publisher(0).blocks == 3


def test_a_block_that_waits_twice_leaves_at_once() -> None:
    fleet, text = Fleet(), prompt(1, 3)
    fleet.apply(0, stored(text, 2, 3), stored(text, 2, 3), removed(text, 2))

    fleet.apply(0, stored(text, 0, 2))

    assert fleet.hits(text) == [8, 0]


def test_a_long_line_of_waiting_children_is_released_at_once() -> None:
    fleet, text = Fleet(1), prompt(1, 3000)
    for at in range(2999, 0, -1):
        fleet.apply(0, stored(text, at, at + 1))

    fleet.apply(0, stored(text, 0, 1))

    assert fleet.hits(text) == [12_000]


def test_knowledge_of_one_publisher_is_no_parent_for_another() -> None:
    fleet, text = Fleet(), prompt(1, 4)
    fleet.apply(0, stored(text, 0, 4))

    fleet.apply(1, stored(text, 2, 4))

    assert fleet.hits(text) == [16, 0]
