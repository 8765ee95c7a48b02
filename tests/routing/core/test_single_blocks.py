"""One-block events: a run of ordinary ones is stored, the first other one is left as it was."""

from typing import Any

import msgspec
import pytest

from routing.core.block_masks import BlockMasks, short_keys
from routing.core.compact_map import CompactMap
from routing.core.kv_events import Cleared, Event, Removed, Stored
from routing.core.prompt import exact_root, token_block_keys
from routing.core.publishers import Publisher
from routing.core.single_blocks import SingleBlocks

BLOCK = 4
ROOT = exact_root(None, None)
TOKENS = list(range(10, 10 + 6 * BLOCK))
KEYS = token_block_keys(
    b"".join(token.to_bytes(4, "little") for token in TOKENS), root=ROOT, block_tokens=BLOCK
)
NAMES = [2**60 + number for number in range(6)]


def stored(position: int, **changes: Any) -> Stored:
    event = Stored(
        [NAMES[position]],
        NAMES[position - 1],
        TOKENS[position * BLOCK : (position + 1) * BLOCK],
        BLOCK,
        medium="GPU",
        extra_keys=[None],
    )
    return msgspec.structs.replace(event, **changes)


class Holder:
    """A publisher that holds the first block, and perhaps others beside it."""

    def __init__(self, *, publishers: int = 1) -> None:
        self.blocks = BlockMasks()
        self.blocks.reserve(publishers)
        self.names = CompactMap()
        self.names.update([(NAMES[0], int(KEYS[0]))])
        self.publishers = [Publisher(slot, self.names) for slot in range(publishers)]
        self.blocks.use(1)
        mask = sum(publisher.device_bit for publisher in self.publishers)
        self.blocks.masks[short_keys(KEYS)[0]] = self.blocks.intern(mask)
        self.single = SingleBlocks(self.blocks, block_tokens=BLOCK)

    def append(self, *events: Event, slot: int = 0) -> Event | None:
        rest = iter(events)
        first = next(rest)
        assert isinstance(first, Stored)
        return self.single.append(self.publishers[slot], first, rest)

    def depths(self) -> list[float]:
        return [float(depth) for depth in self.blocks.match(short_keys(KEYS)).depths]


def test_a_run_of_ordinary_events_is_stored_under_the_keys_of_prompts() -> None:
    holder = Holder()

    left = holder.append(*(stored(position) for position in range(1, 6)))

    assert left is None
    assert holder.depths() == [6.0]
    assert (holder.publishers[0].blocks, holder.publishers[0].counts.stored_blocks) == (5, 5)
    assert [holder.names.get(name) for name in NAMES] == [int(key) for key in KEYS]


@pytest.mark.parametrize(
    "other",
    [
        stored(3, parent_block_hash=5),
        stored(3, parent_block_hash=None),
        stored(3, medium="CPU"),
        stored(3, medium=None),
        stored(3, group_idx=1),
        stored(3, kv_cache_spec_kind="sliding_window"),
        stored(3, block_size=2),
        stored(3, extra_keys=[["salt"]]),
        stored(3, block_hashes=NAMES[3:5], token_ids=TOKENS[3 * BLOCK : 5 * BLOCK]),
        stored(3, token_ids=TOKENS[:3]),
        stored(3, token_ids=[1, 2, 3, -1]),
        stored(3, token_ids=[1, 2, 3, 2**32]),
        stored(3, token_ids=[1, 2, 3, "4"]),
        stored(3, block_hashes=[NAMES[1]]),
        Removed([NAMES[1]]),
        Cleared(),
    ],
)
def test_the_first_other_event_is_left_as_it_was(other: Event) -> None:
    holder = Holder()
    following = stored(4)
    rest = iter([stored(2), other, following])

    left = holder.single.append(holder.publishers[0], stored(1), rest)

    assert left is other
    assert list(rest) == [following]
    assert holder.depths() == [3.0]
    assert holder.publishers[0].blocks == 2
    assert len(holder.blocks) == 3
    assert [holder.names.get(name) for name in NAMES[1:4]] == [int(KEYS[1]), int(KEYS[2]), None]


@pytest.mark.parametrize(
    "first",
    [stored(1, medium="CPU"), stored(1, block_size=2), stored(1, kv_cache_spec_kind="mamba")],
)
def test_another_first_event_is_left_too(first: Stored) -> None:
    holder = Holder()

    left = holder.append(first, stored(1))

    assert left is first
    assert holder.depths() == [1.0]


def test_while_events_wait_for_their_parents_all_go_the_general_way() -> None:
    holder = Holder()
    holder.publishers[0].waiting.add(stored(3))

    assert holder.append(stored(1)) is not None
    assert holder.depths() == [1.0]


def test_a_parent_that_only_others_hold_is_unknown() -> None:
    holder = Holder(publishers=2)
    holder.append(stored(1), slot=1)

    assert holder.append(stored(2), slot=0) is not None
    assert holder.depths() == [1.0, 2.0]


def test_a_block_that_others_hold_is_one_more_and_one_held_already_is_not() -> None:
    holder = Holder(publishers=2)
    holder.append(stored(1), slot=1)

    left = [holder.append(stored(1), stored(1), slot=0) for _ in range(2)]

    assert left == [None, None]
    assert holder.depths() == [2.0, 2.0]
    assert [publisher.blocks for publisher in holder.publishers] == [1, 1]


def test_a_block_held_in_slower_memory_too_is_not_one_more() -> None:
    holder = Holder()
    publisher = holder.publishers[0]
    holder.blocks.masks[short_keys(KEYS)[1]] = publisher.bit("CPU")

    assert holder.append(stored(1)) is None
    assert holder.blocks.masks[short_keys(KEYS)[1]] == publisher.bit("CPU") | publisher.bit("GPU")
    assert publisher.blocks == 0
