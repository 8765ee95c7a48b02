"""Equal blocks side by side in one engine, as a real vLLM has them."""

import base64
import json
from pathlib import Path

import pytest

from routing.core.kv_events import Cleared
from routing.engines.vllm import ENGINE
from tests.routing.producers.event_fleet import BLOCK, Fleet, prompt, removed, stored

SAMPLE = json.loads((Path(__file__).parent / "samples/vllm-0.32-equal-blocks.json").read_text())
ENGINE_BLOCK = 32


@pytest.mark.lesson("X02")
@pytest.mark.parametrize("block_tokens", [ENGINE_BLOCK, 16])
def test_a_real_engine_still_has_a_block_of_which_one_copy_was_evicted(block_tokens: int) -> None:
    fleet = Fleet(1, block_tokens=block_tokens)
    decoder = ENGINE.event_decoder()
    tokens = tuple(SAMPLE["prompt"])
    hits = []
    for batch in SAMPLE["batches"]:
        hits += fleet.hits(tokens)
        fleet.apply(0, *decoder.decode(base64.b64decode(batch["payload"])).events)
    hits += fleet.hits(tokens)

    # What it told when it was asked: nothing at first; less than the whole prompt the second time,
    # because it computes the last token; all of it for a longer one after the eviction.
    assert SAMPLE["cached_tokens"] == [0, 32, 64]
    assert hits == [0, 64, 64, 64]


def test_a_block_computed_again_leaves_with_its_second_copy() -> None:
    fleet, text = Fleet(1), prompt(1, 3)
    fleet.apply(0, stored(text, 0, 3), stored(text, 2, 3), stored(text, 2, 3))

    hits = []
    for _ in range(3):
        fleet.apply(0, removed(text, 2))
        hits += fleet.hits(text)

    assert hits == [3 * BLOCK, 3 * BLOCK, 2 * BLOCK]
    assert fleet.publisher(0).blocks == 2
    assert fleet.publisher(0).counts.unknown_removals == 0


def test_copies_of_one_engine_are_not_those_of_another() -> None:
    fleet, text = Fleet(2), prompt(1, 3)
    fleet.apply(0, stored(text, 0, 3), stored(text, 1, 3))
    fleet.apply(1, stored(text, 0, 3))

    for slot in (0, 1):
        fleet.apply(slot, removed(text, 2))

    assert fleet.hits(text) == [3 * BLOCK, 2 * BLOCK]


def test_a_new_life_has_no_copies() -> None:
    fleet, text = Fleet(1), prompt(1, 3)
    fleet.apply(0, stored(text, 0, 3), stored(text, 2, 3), Cleared(), stored(text, 0, 3))

    fleet.apply(0, removed(text, 2))

    assert fleet.hits(text) == [2 * BLOCK]


def test_what_an_engine_tells_again_is_no_copy() -> None:
    fleet, text = Fleet(1), prompt(1, 3)
    fleet.apply(0, stored(text, 0, 2), stored(text, 0, 2), stored(text, 2, 3))

    fleet.apply(0, removed(text, 1))

    assert fleet.hits(text) == [BLOCK]
