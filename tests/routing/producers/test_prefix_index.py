"""The approximate prefix index: what it matches, bounds and forgets."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from routing.producers.prefix_index import PrefixIndex

CHAINS = [[100 * chain + depth for depth in range(12)] for chain in range(1, 4)]
# Chains that share their first blocks, as prompts with one system prompt do.
CHAINS += [[*CHAINS[0][:6], *range(900 + 10 * fork, 906 + 10 * fork)] for fork in range(2)]


def index_of(count: int, *, capacity: int = 1000) -> PrefixIndex:
    index = PrefixIndex()
    for _ in range(count):
        index.add(capacity_blocks=capacity)
    return index


def test_an_empty_index_matches_nothing() -> None:
    assert index_of(3).match([1, 2, 3]).tolist() == [0, 0, 0]


def test_a_prompt_without_a_whole_block_matches_nothing() -> None:
    index = index_of(1)
    index.insert(0, [1, 2])

    assert index.match([]).tolist() == [0]


def test_depth_is_the_number_of_leading_blocks_held() -> None:
    index = index_of(4)
    index.insert(0, [1, 2, 3, 4])
    index.insert(1, [1, 2])
    index.insert(2, [2, 3, 4])

    assert index.match([1, 2, 3, 4, 5]).tolist() == [4, 2, 0, 0]


def test_a_hole_ends_the_match() -> None:
    index = index_of(1)
    index.insert(0, [1, 2, 4, 5])

    assert index.match([1, 2, 3, 4, 5]).tolist() == [2]


@pytest.mark.parametrize("count", [1, 8, 9, 64, 300])
def test_pools_of_any_size_match_alike(count: int) -> None:
    index = index_of(count)
    for slot in range(count):
        index.insert(slot, list(range(1, 2 + slot % 7)))

    depths = index.match(list(range(1, 20)))

    assert depths.tolist() == [1 + slot % 7 for slot in range(count)]


def test_the_end_of_a_prompt_is_forgotten_before_its_beginning() -> None:
    index = index_of(1, capacity=6)
    index.insert(0, [1, 2, 3, 4])
    index.insert(0, [11, 12, 13, 14])

    assert index.match([1, 2, 3, 4]).tolist() == [2]
    assert index.match([11, 12, 13, 14]).tolist() == [4]


def test_a_prompt_that_is_used_again_stays() -> None:
    index = index_of(1, capacity=6)
    index.insert(0, [1, 2, 3])
    index.insert(0, [11, 12, 13])
    index.insert(0, [1, 2, 3])
    index.insert(0, [21, 22, 23])

    assert index.match([1, 2, 3]).tolist() == [3]
    assert index.match([11, 12, 13]).tolist() == [0]


def test_output_pushes_out_old_prompts() -> None:
    index = index_of(1, capacity=6)
    index.insert(0, [1, 2, 3, 4])

    index.occupy(0, 4)

    assert index.match([1, 2, 3, 4]).tolist() == [2]
    assert index.entries(0) == 6


def test_a_smaller_cache_reported_by_the_engine_is_followed() -> None:
    index = index_of(1)
    index.insert(0, list(range(1, 101)))

    index.set_capacity(0, 10)

    assert index.match(list(range(1, 101))).tolist() == [10]


def test_a_withdrawn_hope_leaves_confirmed_blocks() -> None:
    index = index_of(1)
    index.confirm(0, [1, 2])
    index.insert(0, [1, 2, 3, 4], lease=7)

    index.withdraw(0, [1, 2, 3, 4], lease=7)

    assert index.match([1, 2, 3, 4]).tolist() == [2]


def test_a_hope_that_a_sibling_shares_stays_until_the_sibling_fails_too() -> None:
    index = index_of(1)
    index.insert(0, [1, 2], lease=7)
    index.insert(0, [1, 2], lease=8)

    index.withdraw(0, [1, 2], lease=7)
    shared = index.match([1, 2]).tolist()
    index.withdraw(0, [1, 2], lease=8)

    assert shared == [2]
    assert index.match([1, 2]).tolist() == [0]


def test_a_slot_is_used_again_with_an_empty_cache() -> None:
    index = index_of(2)
    index.insert(0, [1, 2])
    index.remove(0)

    slot = index.add(capacity_blocks=10)

    assert slot == 0
    assert index.match([1, 2]).tolist() == [0, 0]


class AgainstSets(RuleBasedStateMachine):
    """The index against one plain set of keys per slot."""

    slots = st.integers(0, 3)
    chains = st.sampled_from(CHAINS)

    @initialize()
    def start(self) -> None:
        self.index = index_of(4)
        self.held: list[set[int]] = [set() for _ in range(4)]

    @rule(slot=slots, chain=chains, length=st.integers(0, 12))
    def insert(self, slot: int, chain: list[int], length: int) -> None:
        self.index.insert(slot, chain[:length])
        self.held[slot].update(chain[:length])

    @rule(slot=slots)
    def clear(self, slot: int) -> None:
        self.index.clear(slot)
        self.held[slot].clear()

    @rule(slot=slots, chain=chains)
    def hope_in_vain(self, slot: int, chain: list[int]) -> None:
        self.index.insert(slot, chain, lease=5)
        self.index.withdraw(slot, chain, lease=5)

    @invariant()
    def matches_are_those_of_the_sets(self) -> None:
        for chain in CHAINS:
            expected = [
                next((i for i, key in enumerate(chain) if key not in held), len(chain))
                for held in self.held
            ]
            assert self.index.match(chain).tolist() == expected

    @invariant()
    def nothing_is_kept_that_nobody_holds(self) -> None:
        assert set(self.index.blocks.masks) == set().union(*self.held)


AgainstSets.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestAgainstSets = AgainstSets.TestCase


@given(
    prompts=st.lists(st.lists(st.integers(1, 60), max_size=30, unique=True), max_size=20),
    capacity=st.integers(1, 40),
)
@settings(max_examples=80, deadline=None)
def test_an_instance_never_holds_more_than_its_capacity(
    prompts: list[list[int]], capacity: int
) -> None:
    index = index_of(1, capacity=capacity)

    for prompt in prompts:
        index.insert(0, prompt)

        assert index.entries(0) <= capacity
    assert len(index.blocks.masks) <= capacity
    assert np.isfinite(index.match(list(range(60)))).all()
