"""KV blocks: shared by key, counted where nobody can share them, longest unused evicted first."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from routing.simulator.engine.kv_cache import KvCache


def filled(*keys: int, total: int = 10) -> KvCache:
    """A cache with idle blocks, in that order."""
    cache = KvCache(total, tells=True)
    for key in keys:
        cache.allocate(1)
        cache.leave(cache.publish([key]), 0)
    return cache


def test_a_match_ends_at_the_first_missing_block() -> None:
    cache = filled(1, 2, 4)

    assert cache.match([1, 2, 3, 4], 4) == 2
    assert cache.match([1, 2], 1) == 1


def test_what_was_unused_longest_is_evicted_first() -> None:
    cache = filled(1, 2, 3, total=3)
    cache.take([1])
    cache.leave([1], 0)

    assert cache.allocate(2)
    assert cache.removed == [2, 3]


def test_ends_of_chains_are_evicted_before_their_beginnings() -> None:
    cache = KvCache(3, tells=True)
    cache.allocate(3)
    cache.leave(cache.publish([1, 2, 3]), 0)

    cache.allocate(2)

    assert cache.removed == [3, 2]


def test_blocks_in_use_are_never_evicted() -> None:
    cache = filled(1, 2, total=2)
    cache.take([1])

    assert not cache.allocate(2)
    assert cache.allocate(1)
    assert cache.match([1], 1) == 1


def test_a_block_that_is_there_already_stays_private_for_a_second_owner() -> None:
    cache = KvCache(4)
    cache.allocate(2)
    first, second = cache.publish([7]), cache.publish([7])

    assert (first, second) == ([7], [])
    assert cache.private == 1


class Users(RuleBasedStateMachine):
    """Jobs take, compute, publish and leave in any order."""

    @initialize(total=st.integers(1, 12))
    def begin(self, total: int) -> None:
        self.cache = KvCache(total)
        self.jobs: list[tuple[list[int], int]] = []

    @rule(chain=st.lists(st.integers(0, 5), unique=True, max_size=4), more=st.integers(0, 4))
    def admit(self, chain: list[int], more: int) -> None:
        hit = self.cache.match(chain, len(chain))
        self.cache.take(chain[:hit])
        taken, missing = chain[:hit], len(chain) - hit + more
        if not self.cache.allocate(missing):
            self.cache.leave(taken, 0)
            return
        published = self.cache.publish(chain[hit:])
        self.jobs.append((taken + published, missing - len(published)))

    @rule(choice=st.integers(0, 10))
    def leave(self, choice: int) -> None:
        if self.jobs:
            self.cache.leave(*self.jobs.pop(choice % len(self.jobs)))

    @invariant()
    def blocks_add_up(self) -> None:
        if hasattr(self, "cache"):
            cache = self.cache
            assert cache.free + len(cache.idle) + len(cache.shared) + cache.private == cache.total
            assert cache.private == sum(private for _, private in self.jobs)
            assert cache.free >= 0
            assert not set(cache.idle) & set(cache.shared)


TestUsers = Users.TestCase
