"""How often an engine has a block."""

from typing import Any

from routing.core import block_copies
from routing.core.block_copies import BlockCopies
from routing.core.kv_events import Stored


def event(*names: int, parent: int | None = 9, **fields: Any) -> Stored:
    return Stored(list(names), parent, [0] * 16 * len(names), 16, **fields)


def test_a_block_is_gone_when_its_last_copy_is() -> None:
    copies = BlockCopies()
    copies.note(event(1, 2, 3), [1])
    copies.note(event(2), [0])

    assert [copies.without([1, 2]) for _ in range(4)] == [[1], [1], [1, 2], [1, 2]]
    assert not copies


def test_a_beginning_that_is_all_there_was_only_told_again() -> None:
    copies = BlockCopies()

    copies.note(event(1, 2, parent=None), [0, 1])
    copies.note(event(1, 2, parent=0), [0, 1])
    assert copies.without([1, 2]) == [1, 2]

    copies.note(event(1, 2, parent=None), [0])
    assert copies.without([1, 2]) == [2]


def test_stores_below_the_device_hold_a_block_once() -> None:
    copies = BlockCopies()

    copies.note(event(1, medium="CPU"), [0])

    assert copies.without([1]) == [1]


def test_what_is_remembered_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(block_copies, "MAX_COPIED_BLOCKS", 2)
    copies = BlockCopies()

    copies.note(event(1, 2, 3), [0, 1, 2])
    copies.note(event(1), [0])

    assert copies.without([1, 2, 3]) == [3]
    assert copies.without([1]) == []


def test_everything_may_leave_at_once() -> None:
    copies = BlockCopies()
    copies.note(event(1), [0])

    copies.clear()

    assert copies.without([1]) == [1]
