"""Block pool: nothing is lost, nothing is handed out twice, the oldest goes first."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from routing.testbed.cache import BlockPool

BLOCKS = 12


def test_an_unused_block_is_found_by_its_key_until_it_is_evicted() -> None:
    pool = BlockPool(2)
    (block,) = pool.allocate(1) or []
    pool.register(block, 77)
    pool.free([block])

    found = pool.match([77], 10)
    pool.allocate(2)

    assert found == [block]
    assert pool.match([77], 10) == []


def test_the_block_that_was_unused_longest_is_evicted_first() -> None:
    pool = BlockPool(2, record_removals=True)
    blocks = pool.allocate(2) or []
    for block, key in zip(blocks, (1, 2), strict=True):
        pool.register(block, key)
    pool.free(blocks)
    pool.take(pool.match([1], 1))
    pool.free(pool.match([1], 1))

    pool.allocate(1)

    assert pool.removed == [2]


def test_more_blocks_than_there_are_is_none_and_changes_nothing() -> None:
    pool = BlockPool(3)
    pool.allocate(1)

    assert pool.allocate(3) is None
    assert pool.available == 2


def test_clearing_forgets_keys_and_keeps_users() -> None:
    pool = BlockPool(3)
    used = pool.allocate(2) or []
    pool.register(used[0], 5)
    pool.register(used[1], 6)
    pool.free(used[1:])

    pool.clear()

    assert pool.match([5], 1) == []
    assert pool.available == 2
    pool.free(used[:1])
    assert pool.available == 3


class PoolMachine(RuleBasedStateMachine):
    """Any order of taking and freeing keeps the books right."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(BLOCKS)
        self.users: dict[int, int] = {}
        self.next_key = 1

    held = Bundle("held")

    @rule(target=held, count=st.integers(1, 5), register=st.booleans())
    def allocate(self, count: int, register: bool) -> list[int]:
        blocks = self.pool.allocate(count) or []
        assert not [block for block in blocks if self.users.get(block)]
        for block in blocks:
            self.users[block] = 1
            if register:
                self.pool.register(block, self.next_key)
                self.next_key += 1
        return blocks

    @rule(target=held, first=st.integers(1, 60), count=st.integers(1, 4))
    def share(self, first: int, count: int) -> list[int]:
        blocks = self.pool.match(range(first, first + count), count)
        self.pool.take(blocks)
        for block in blocks:
            self.users[block] = self.users.get(block, 0) + 1
        return blocks

    @rule(blocks=consumes(held))
    def free(self, blocks: list[int]) -> None:
        self.pool.free(blocks)
        for block in blocks:
            self.users[block] -= 1

    @rule()
    def clear(self) -> None:
        self.pool.clear()

    @invariant()
    def every_block_is_used_or_available(self) -> None:
        used = sum(1 for count in self.users.values() if count)
        assert self.pool.available == BLOCKS - used


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
