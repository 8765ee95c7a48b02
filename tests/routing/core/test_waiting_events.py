"""Events that wait for their parent."""

from array import array

from routing.core.kv_events import Stored
from routing.core.waiting_events import (
    MAX_WAITING_BLOCKS,
    MAX_WAITING_EVENTS,
    WaitingEvents,
)


def event(parent: int, *hashes: int) -> Stored:
    return Stored(list(hashes), parent, [], 16)


def test_what_waits_is_taken_with_its_parent_once() -> None:
    waiting = WaitingEvents()
    waiting.add(event(1, 11, 12))
    waiting.add(event(1, 13))
    waiting.add(event(2, 21))

    taken = waiting.take([1, 99])

    assert [(e.block_hashes, removed) for e, removed in taken] == [([11, 12], []), ([13], [])]
    assert waiting.take([1]) == []
    assert waiting.blocks == 1


def test_blocks_that_left_are_named() -> None:
    waiting = WaitingEvents()
    waiting.add(event(1, 11, 12))

    assert waiting.remove(12)
    assert not waiting.remove(99)

    ((_, removed),) = waiting.take([1])
    assert removed == [12]
    assert not waiting.remove(12)


def test_a_block_that_left_is_named_by_each_event_in_which_it_waits() -> None:
    waiting = WaitingEvents()
    waiting.add(event(1, 11))
    waiting.add(event(1, 11, 12))
    waiting.remove(11)

    assert [removed for _, removed in waiting.take([1])] == [[11], [11]]
    assert waiting.blocks == 0


def test_the_oldest_are_given_up() -> None:
    waiting = WaitingEvents()
    half = MAX_WAITING_BLOCKS // 2
    waiting.add(event(1, *range(half)))
    waiting.add(event(2, *range(half, 2 * half)))

    assert waiting.add(event(3, -1, -2)) == half
    assert waiting.take([1]) == []
    assert waiting.add(event(4, *range(MAX_WAITING_BLOCKS + 1))) == MAX_WAITING_BLOCKS + 1


def test_many_small_events_are_bounded_too() -> None:
    waiting = WaitingEvents()
    for number in range(MAX_WAITING_EVENTS):
        assert waiting.add(event(number, 100_000 + number)) == 0

    assert waiting.add(event(-1, 1)) == 1
    assert waiting.take([0]) == []
    assert waiting.take([1])


def test_what_waits_keeps_its_tokens_in_few_bytes() -> None:
    waiting = WaitingEvents()
    waiting.add(Stored([11], 1, [100_000, 7], 2))

    ((kept, _),) = waiting.take([1])

    assert list(kept.token_ids) == [100_000, 7]
    assert isinstance(kept.token_ids, array)


def test_clearing_leaves_nothing() -> None:
    waiting = WaitingEvents()
    waiting.add(event(1, 11))

    waiting.clear()

    assert not waiting
    assert (waiting.blocks, waiting.take([1])) == (0, [])
