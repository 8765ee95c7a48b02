"""Pages of any size beside blocks of the index."""

import base64
import json
from pathlib import Path

import pytest

from routing.engines.vllm import ENGINE
from tests.routing.producers.event_fleet import BLOCK, Fleet, prompt, removed, stored

PARTED = json.loads((Path(__file__).parent / "samples/vllm-0.32-parted-blocks.json").read_text())


@pytest.mark.lesson("W04")
@pytest.mark.lesson("W03")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 8, 16])
def test_tokens_count_whatever_the_engines_block_size(size: int) -> None:
    fleet, text = Fleet(), prompt(1, 12)

    fleet.apply(0, stored(text, 0, 48 // size, size=size))

    assert fleet.hits(text)[0] == 48
    assert fleet.publisher(0).blocks == 12


@pytest.mark.lesson("W03")
def test_endpoints_of_different_block_sizes_share_one_pool() -> None:
    fleet, text = Fleet(3), prompt(1, 16)

    fleet.apply(0, stored(text, 0, 15))
    fleet.apply(1, stored(text, 0, 3, size=16))
    fleet.apply(2, stored(text, 0, 63, size=1))

    assert fleet.hits(text) == [60, 48, 60]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_page_that_leaves_takes_every_block_under_which_it_is(size: int) -> None:
    fleet, text = Fleet(1), prompt(1, 6)
    fleet.apply(0, stored(text, 0, 24 // size, size=size))

    fleet.apply(0, removed(text, 9 // size, size=size))

    start = 9 // size * size
    assert fleet.hits(text) == [start // BLOCK * BLOCK]


def test_branches_of_small_pages_finish_blocks_of_their_own() -> None:
    fleet, one, two = Fleet(1), (1, 2, 3, 4, 5), (1, 2, 3, 9, 5)
    fleet.apply(0, stored(one, 0, 4, size=1), stored(two, 3, 4, size=1))
    assert (fleet.hits(one), fleet.hits(two)) == ([4], [4])

    fleet.apply(0, removed(two, 3, size=1))

    assert (fleet.hits(one), fleet.hits(two)) == ([4], [0])


@pytest.mark.lesson("W04")
def test_a_real_engines_block_keeps_the_beginning_that_it_shared_with_an_evicted_one() -> None:
    fleet, decoder = Fleet(1, block_tokens=16), ENGINE.event_decoder()
    first, second = (tuple(tokens) for tokens in PARTED["prompts"])

    for batch in PARTED["batches"]:
        fleet.apply(0, *decoder.decode(base64.b64decode(batch["payload"])).events)

    # What it told: nothing, the block that both begin with, and two blocks after the eviction.
    assert PARTED["cached_tokens"] == [0, 32, 64]
    assert fleet.hits(second) == [64]
    # The engine rounds down to its own blocks of 32.
    assert fleet.hits(first) == [48]
