"""Blocks of another size than the router's, page by page."""

from routing.core.prompt import token_block_keys
from routing.core.rechunking import Page, Pages, start

WIDTH = 16
TEXT = bytes(range(64))
KEYS = token_block_keys(TEXT, root=1, block_tokens=4).tolist()


class Held:
    """Keys that a publisher's pages hold."""

    def __init__(self, *, limit: int = 100) -> None:
        self.keys: set[int] = set()
        self.pages = Pages(
            width=WIDTH, limit=limit, hold=self._hold, drop=self.keys.difference_update
        )

    def _hold(self, keys: list[int]) -> list[int]:
        before = [position for position, key in enumerate(keys) if key in self.keys]
        self.keys.update(keys)
        return before

    def store(self, size: int, count: int) -> None:
        after: Page = start(1)
        for at in range(count):
            after = self.pages.store(at, TEXT[at * size : (at + 1) * size], after)


def test_small_pages_fill_a_block() -> None:
    held = Held()

    held.store(4, 9)

    assert held.keys == set(KEYS[:2])


def test_a_large_page_is_many_blocks() -> None:
    held = Held()

    held.store(32, 2)
    held.pages.remove(1)

    assert held.keys == set(KEYS[:2])


def test_a_block_needs_every_page_under_it() -> None:
    held = Held()
    held.store(12, 5)
    assert held.keys == set(KEYS[:3])

    held.pages.remove(1)

    assert held.keys == set(KEYS[2:3])


def test_a_page_stored_twice_is_one() -> None:
    held = Held()

    held.store(4, 4)
    held.store(4, 4)

    assert (len(held.pages), held.keys) == (4, {KEYS[0]})
    assert not held.pages.remove(77)


def test_the_oldest_pages_go_when_there_are_too_many() -> None:
    held = Held(limit=4)

    held.store(16, 4)
    held.pages.store(9, bytes(16), start(2))

    assert len(held.pages) == 4
    assert KEYS[0] not in held.keys


def test_cleared_pages_complete_nothing() -> None:
    held = Held()
    after = held.pages.store(0, TEXT[:8], start(1))
    held.pages.clear()

    held.pages.store(1, TEXT[8:16], after)

    assert held.keys == set()


def test_branches_that_part_inside_a_page_share_the_blocks_before() -> None:
    held = Held()
    other = TEXT[:16] + bytes(16)
    held.store(32, 1)
    held.pages.store(7, other, start(1))
    assert len(held.keys) == 3

    held.pages.remove(7)
    assert held.keys == set(KEYS[:2])
    held.pages.remove(0)
    assert held.keys == set()


def test_branches_that_part_after_a_block_was_filled_share_it() -> None:
    held = Held()
    held.store(12, 3)
    first = held.pages.get(0)
    assert first is not None
    held.pages.store(7, TEXT[12:16] + bytes(8), first)

    held.pages.remove(1)
    assert held.keys == {KEYS[0]}
    held.pages.remove(0)
    assert held.keys == set()


def test_branches_that_are_gone_leave_nothing_at_the_page_they_parted_in() -> None:
    held = Held()
    shared = held.pages.store(0, TEXT[:8], start(1))
    for name in range(1, 1001):
        held.pages.store(name, name.to_bytes(8, "big"), shared)
        if name > 20:
            held.pages.remove(name - 20)
            assert len(held.keys) == 20

    assert len(shared.grounds) < 100
    held.pages.remove(0)
    assert held.keys == set()
