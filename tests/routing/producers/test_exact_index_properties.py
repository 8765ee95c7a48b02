"""The exact index against a naive model."""

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from routing.core.kv_events import Cleared
from tests.routing.producers.event_fleet import BLOCK, Fleet, Tokens, prompt, removed, stored

CHAINS = [prompt(number, 8) for number in range(4)]
# A conversation that forks in the middle.
CHAINS += [CHAINS[0][:16] + tuple(range(500 + 50 * fork, 516 + 50 * fork)) for fork in range(2)]
# And one that forks inside a larger block of an engine.
CHAINS += [CHAINS[0][:20] + tuple(range(700, 712))]
POSITIONS = st.integers(0, 7)
MEDIA = st.sampled_from([None, "GPU", "CPU", "DISK"])


def store_in(
    held: Counter[Tokens], parent: Tokens, blocks: list[Tokens], *, has_copies: bool
) -> None:
    """What an engine has after it told of blocks; a whole beginning is only told again."""
    is_repeated = not parent and all(block in held for block in blocks)
    for block in blocks:
        held[block] = held[block] + 1 if has_copies and not is_repeated else max(1, held[block])


def take_from(held: Counter[Tokens], block: Tokens) -> None:
    held[block] -= 1
    if not held[block]:
        del held[block]


class IndexMachine(RuleBasedStateMachine):
    """Any stream of events of two honest engines, with gaps, holes, restarts and evictions."""

    @initialize()
    def start(self) -> None:
        self.fleet = Fleet(2)
        self.held: list[dict[str, Counter[Tokens]]] = [{}, {}]
        """Per slot and medium how often the last block of each prefix is held."""
        self.waiting: list[list[tuple[str, Tokens, list[Tokens]]]] = [[], []]
        """Per slot medium, parent and blocks that wait for it."""

    def medium(self, slot: int, medium: str | None) -> Counter[Tokens]:
        return self.held[slot].setdefault(medium or "GPU", Counter())

    def is_known(self, slot: int, prefix: Tokens) -> bool:
        return any(prefix in prefixes for prefixes in self.held[slot].values())

    def model_store(self, slot: int, medium: str, parent: Tokens, blocks: list[Tokens]) -> None:
        if parent and not self.is_known(slot, parent):
            self.waiting[slot].append((medium, parent, blocks))
            return
        store_in(self.medium(slot, medium), parent, blocks, has_copies=medium == "GPU")
        for entry in list(self.waiting[slot]):
            if entry in self.waiting[slot] and self.is_known(slot, entry[1]):
                self.waiting[slot].remove(entry)
                self.model_store(slot, *entry)

    @rule(slot=st.integers(0, 1), text=st.sampled_from(CHAINS), a=POSITIONS, b=POSITIONS, on=MEDIA)
    def store(self, slot: int, text: Tokens, a: int, b: int, on: str | None) -> None:
        first, last = min(a, b), max(a, b) + 1
        self.fleet.apply(slot, stored(text, first, last, medium=on))
        blocks = [text[: BLOCK * (at + 1)] for at in range(first, last)]
        self.model_store(slot, on or "GPU", text[: BLOCK * first], blocks)

    @rule(slot=st.integers(0, 1), text=st.sampled_from(CHAINS), at=POSITIONS, on=MEDIA)
    def remove(self, slot: int, text: Tokens, at: int, on: str | None) -> None:
        self.fleet.apply(slot, removed(text, at, medium=on))
        prefix = text[: BLOCK * (at + 1)]
        held = self.medium(slot, on)
        if prefix in held:
            take_from(held, prefix)
            return
        for medium, _, blocks in self.waiting[slot]:
            # A block that waits for its parent on any medium is dropped when it leaves.
            if prefix in blocks and medium:
                blocks.remove(prefix)

    @rule(slot=st.integers(0, 1), restarts=st.booleans())
    def clear(self, slot: int, restarts: bool) -> None:
        if restarts:
            self.fleet.index.clear(slot)
        else:
            self.fleet.apply(slot, Cleared())
        self.held[slot].clear()
        self.waiting[slot].clear()

    @invariant()
    def equals_the_model(self) -> None:
        if not hasattr(self, "fleet"):
            return
        for text in CHAINS:
            expected = []
            for slot in range(2):
                depth = 0
                while depth < 8 and self.is_known(slot, text[: BLOCK * (depth + 1)]):
                    depth += 1
                expected.append(depth * BLOCK)
            assert self.fleet.hits(text) == expected

    @invariant()
    def counts_its_blocks(self) -> None:
        if hasattr(self, "fleet"):
            for slot in range(2):
                publisher = self.fleet.publisher(slot)
                assert publisher.blocks == len(set().union(*self.held[slot].values()))


TestIndex = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(
    size=st.sampled_from([1, 2, 3, 5, 8, 12]),
    steps=st.lists(
        st.tuples(st.booleans(), st.sampled_from(CHAINS), st.integers(0, 31)), max_size=30
    ),
)
@settings(max_examples=100, deadline=None)
def test_pages_never_promise_more_than_is_held_and_whole_blocks_not_less(
    size: int, steps: list[tuple[bool, Tokens, int]]
) -> None:
    fleet = Fleet(1)
    held = Counter[Tokens]()
    for stores, text, at in steps:
        at %= len(text) // size
        prefix = text[: size * (at + 1)]
        if stores:
            fleet.apply(0, stored(text, 0, at + 1, size=size))
            blocks = [text[: size * (before + 1)] for before in range(at + 1)]
            store_in(held, (), blocks, has_copies=True)
        else:
            fleet.apply(0, removed(text, at, size=size))
            if prefix in held:
                take_from(held, prefix)

    for text in CHAINS:
        depth = 0
        while depth < len(text) // size and text[: size * (depth + 1)] in held:
            depth += 1
        # Whoever asks rounds down to whole blocks of the engine.
        found = fleet.hits(text)[0] // size
        assert found == depth if size % BLOCK == 0 else found <= depth


@given(size=st.sampled_from([1, 2, 3, 5, 8, 12]), data=st.data())
@settings(max_examples=60, deadline=None)
def test_pages_that_leave_from_the_end_are_followed_exactly(size: int, data: st.DataObject) -> None:
    fleet, text = Fleet(1), prompt(3, 12)
    pages = len(text) // size
    fleet.apply(0, stored(text, 0, pages, size=size))

    keep = data.draw(st.integers(0, pages))
    for at in range(pages - 1, keep - 1, -1):
        fleet.apply(0, removed(text, at, size=size))

    assert fleet.hits(text) == [keep * size // BLOCK * BLOCK]
    assert fleet.publisher(0).blocks == keep * size // BLOCK
