"""The map of 64-bit numbers: it behaves like a dictionary."""

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from routing.core.compact_map import _ZERO, SPILL, CompactMap

# One number stands for 0 in the table.
NAMES = (st.integers(0, 40) | st.integers(0, 2**64 - 1)).filter(lambda name: name != _ZERO)
VALUES = st.integers(1, 2**64 - 1)


class MapMachine(RuleBasedStateMachine):
    """Every entry is moved at once, so that tables are what is tested."""

    @initialize()
    def start(self) -> None:
        self.map = CompactMap()
        self.model: dict[int, int] = {}

    @rule(entries=st.dictionaries(NAMES, VALUES, max_size=30), settles=st.booleans())
    def enter(self, entries: dict[int, int], settles: bool) -> None:
        self.map.update(entries.items())
        self.model |= entries
        if settles:
            self.map.settle()

    @rule(name=NAMES)
    def delete(self, name: int) -> None:
        self.map.delete(name)
        self.model.pop(name, None)

    @rule()
    def clear(self) -> None:
        self.map.clear()
        self.model.clear()

    @invariant()
    def equals_a_dictionary(self) -> None:
        if hasattr(self, "map"):
            for name, value in self.model.items():
                assert self.map.get(name) == value
            for name in range(41):
                assert self.map.get(name) == self.model.get(name)


TestMap = MapMachine.TestCase
TestMap.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


def spread(number: int) -> int:
    return number * 0x9E3779B97F4A7C15 + 1 & (1 << 64) - 1


def test_it_grows_while_it_answers() -> None:
    numbers = CompactMap()
    count = 12 * SPILL
    for first in range(0, count, 100):
        numbers.update((spread(n), n + 1) for n in range(first, min(count, first + 100)))
        numbers.delete(spread(first + 7))

    for n in range(count):
        assert numbers.get(spread(n)) == (None if n % 100 == 7 else n + 1)


def test_an_entry_takes_less_than_forty_bytes_when_it_does_not_grow() -> None:
    numbers = CompactMap()
    for first in range(0, 10 * SPILL, SPILL):
        numbers.update((spread(n), 1) for n in range(first, first + SPILL))
        numbers.settle()

    while numbers._before is not None:
        numbers.settle()

    assert numbers.bytes / (10 * SPILL) < 40


def test_what_nobody_needs_is_left_behind_when_it_grows() -> None:
    numbers = CompactMap(is_kept=lambda value: value == 2)
    numbers.update((spread(n), 1 + n % 2) for n in range(SPILL))
    numbers.doubt()

    for first in range(SPILL, 8 * SPILL, SPILL):
        numbers.update((spread(n), 2) for n in range(first, first + SPILL))

    assert numbers.get(spread(1)) == 2
    assert numbers.get(spread(0)) is None


@given(st.integers(-(2**63), -1))
def test_signed_numbers_are_names_like_others(name: int) -> None:
    numbers = CompactMap()
    numbers.update([(name, 5)])

    numbers.settle()

    assert numbers.get(name) == 5
    numbers.delete(name)
    assert numbers.get(name) is None
