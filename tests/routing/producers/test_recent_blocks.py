"""The approximate index of other policies: a tree of keys, bounded, perhaps with a lifetime."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from routing.producers import recent_blocks
from routing.producers.recent_blocks import RecentBlocks
from tests.routing.contexts import make_table


def depths(index: RecentBlocks, table: Any, keys: list[int], now: float = 0.0) -> list[float]:
    return index.depths(table, keys, now=now).tolist()


def test_the_longest_unbroken_prefix_of_each_endpoint_is_found() -> None:
    index, table = RecentBlocks(capacity_blocks=100), make_table(3)
    index.insert(table, table.instances[0], [1, 2, 3], now=0.0)
    index.insert(table, table.instances[1], [1, 2, 9], now=0.0)

    assert depths(index, table, [1, 2, 3, 4]) == [3, 2, 0]
    assert depths(index, table, [7, 2, 3]) == [0, 0, 0]
    assert depths(index, table, []) == [0, 0, 0]


def test_leaves_leave_before_the_prefix_that_they_follow() -> None:
    index, table = RecentBlocks(capacity_blocks=4), make_table(1)
    first = table.instances[0]
    index.insert(table, first, [1, 2, 3], now=0.0)
    index.insert(table, first, [1, 5, 6], now=1.0)

    assert len(index) == 4
    assert depths(index, table, [1, 2, 3]) == [2]
    assert depths(index, table, [1, 5, 6]) == [3]


def test_an_entry_is_forgotten_after_its_lifetime_and_use_renews_it() -> None:
    index, table = RecentBlocks(capacity_blocks=10, lifetime_seconds=120.0), make_table(1)
    index.insert(table, table.instances[0], [1, 2], now=0.0)
    index.insert(table, table.instances[0], [1], now=100.0)

    assert depths(index, table, [1, 2], now=119.0) == [2]
    assert depths(index, table, [1, 2], now=130.0) == [1]
    assert depths(index, table, [1, 2], now=230.0) == [0]
    assert len(index) == 0


def test_what_an_instance_held_is_gone_with_it_and_its_place_is_used_again() -> None:
    index, table = RecentBlocks(capacity_blocks=10), make_table(2)
    index.insert(table, table.instances[0], [1, 2], now=0.0)
    index.insert(table, table.instances[1], [1], now=0.0)

    later = make_table(2)
    later.instances = (table.instances[1], later.instances[1])

    assert depths(index, later, [1, 2]) == [1, 0]
    assert len(index) == 1


def test_an_insert_for_an_instance_that_is_gone_does_nothing() -> None:
    index, table = RecentBlocks(capacity_blocks=10), make_table(1)

    index.insert(table, make_table(1).instances[0], [1, 2], now=0.0)

    assert len(index) == 0


def test_all_instances_together_stay_within_the_bound(monkeypatch: Any) -> None:
    monkeypatch.setattr(recent_blocks, "MOST_BLOCKS", 12)
    index, table = RecentBlocks(capacity_blocks=1000), make_table(3)

    for instance in table.instances:
        index.insert(table, instance, list(range(50)), now=0.0)

    assert len(index) == 12


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, 3), min_size=1, max_size=5)),
        max_size=30,
    ),
    st.lists(st.integers(0, 3), max_size=5),
)
def test_it_agrees_with_a_set_of_prefixes_while_nothing_is_evicted(
    inserts: list[tuple[int, list[int]]], asked: list[int]
) -> None:
    index, table = RecentBlocks(capacity_blocks=10_000), make_table(3)
    naive: list[set[tuple[int, ...]]] = [set(), set(), set()]

    for row, prompt in inserts:
        prefixes = [tuple(prompt[: end + 1]) for end in range(len(prompt))]
        naive[row] |= set(prefixes)
        index.insert(table, table.instances[row], [_key(prefix) for prefix in prefixes], now=0.0)

    keys = [_key(tuple(asked[: end + 1])) for end in range(len(asked))]
    expected = []
    for held in naive:
        held_depths = [tuple(asked[: end + 1]) in held for end in range(len(asked))]
        expected.append(float(np.argmin([*held_depths, False])))
    assert depths(index, table, keys) == expected


def _key(prefix: tuple[int, ...]) -> int:
    return hash(prefix)
