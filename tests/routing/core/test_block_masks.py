"""The table of who holds which block: its walk equals a look at every slot by itself."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from routing.core.block_masks import DEVICE, HOST, PLANES, REMOTE, BlockMasks, short_keys

SLOTS = 12


def masks_of(bits: list[list[int]]) -> BlockMasks:
    """Block `i` has the bits of `bits[i]`."""
    blocks = BlockMasks()
    blocks.reserve(SLOTS)
    for plane in (DEVICE, HOST, REMOTE):
        blocks.use(plane)
    for key, positions in enumerate(bits):
        mask = sum(1 << position for position in set(positions))
        if mask:
            blocks.masks[key] = blocks.intern(mask)
    return blocks


@given(
    st.lists(st.lists(st.integers(0, PLANES * SLOTS - 1), max_size=40), max_size=10),
    st.sets(st.integers(0, PLANES * SLOTS - 1), max_size=6),
)
@settings(max_examples=200, deadline=None)
def test_a_walk_equals_a_look_at_each_slot(bits: list[list[int]], dead: set[int]) -> None:
    blocks = masks_of(bits)
    blocks.mark_dead(sum(1 << position for position in dead))

    match = blocks.match(list(range(len(bits))))

    for slot in range(SLOTS):
        planes = [
            {bit - PLANES * slot for bit in block if bit not in dead and bit // PLANES == slot}
            for block in bits
        ]
        depth = 0
        while depth < len(bits) and planes[depth]:
            depth += 1
        assert match.depths[slot] == depth
        slower = np.zeros(2) if match.slower is None else match.slower[:, slot]
        fastest = [min(held, key=lambda p: max(p, DEVICE)) for held in planes[:depth]]
        assert slower.tolist() == [fastest.count(HOST), fastest.count(REMOTE)]


def test_dead_bits_live_again_when_they_are_gone() -> None:
    blocks = masks_of([[1, 5], [1]])
    blocks.mark_dead(1 << 1)
    assert blocks.match([0, 1]).depths[:2].tolist() == [0, 1]
    for key in (0, 1):
        blocks.unset(key, 1 << 1)

    blocks.revive(1 << 1)

    assert (len(blocks), blocks.match([0, 1]).depths[:2].tolist()) == (1, [0, 1])


def test_the_oldest_blocks_are_forgotten_but_not_what_is_believed() -> None:
    blocks = masks_of([[1], [0, 1], [5]])

    blocks.forget_oldest(2)

    assert blocks.masks == {1: 1, 2: 1 << 5}


def test_keys_have_sixty_bits() -> None:
    assert short_keys(np.array([2**64 - 1, 5], dtype=np.uint64)) == [2**60 - 1, 5]
