"""The exact prefix index, case by case."""

from typing import Any

import msgspec
import pytest

from routing.core.block_masks import HOST, REMOTE
from routing.core.kv_events import Cleared, Removed, Stored
from tests.routing.producers.event_fleet import BLOCK, Fleet, Tokens, prompt, removed, stored


def test_a_prompt_is_found_as_far_as_it_is_held() -> None:
    fleet, text = Fleet(), prompt(1, 6)

    fleet.apply(0, stored(text, 0, 4))
    fleet.apply(1, stored(text, 0, 2))
    fleet.apply(0, stored(text, 4, 6))

    assert fleet.hits(text) == [24, 8]
    assert fleet.hits(prompt(2, 6)) == [8, 8]
    assert fleet.hits(text[:10]) == [8, 8]


@pytest.mark.lesson("X02")
def test_evicted_blocks_are_followed_one_by_one() -> None:
    fleet, text = Fleet(), prompt(1, 6)
    fleet.apply(0, stored(text, 0, 6))

    fleet.apply(0, removed(text, 5), removed(text, 4))

    assert fleet.hits(text) == [16, 0]
    assert fleet.publisher(0).blocks == 4


def test_a_hole_ends_the_hit_and_may_be_filled() -> None:
    fleet, text = Fleet(), prompt(1, 6)
    fleet.apply(0, stored(text, 0, 6), removed(text, 3))
    assert fleet.hits(text) == [12, 0]

    fleet.apply(0, stored(text, 3, 4))

    assert fleet.hits(text) == [24, 0]


def test_blocks_leave_one_instance_and_stay_at_another() -> None:
    fleet, text = Fleet(), prompt(1, 3)
    fleet.apply(0, stored(text, 0, 3))
    fleet.apply(1, stored(text, 0, 3))

    fleet.apply(0, Cleared())
    fleet.apply(1, removed(text, 2))

    assert fleet.hits(text) == [0, 8]


def test_a_parent_of_number_zero_is_none() -> None:
    fleet, text = Fleet(), prompt(1, 2)
    event = msgspec.structs.replace(stored(text, 0, 2), parent_block_hash=0)

    fleet.apply(0, event)

    assert fleet.hits(text) == [8, 0]


@pytest.mark.parametrize(
    ("extra_keys", "lora_name", "adapter", "salt"),
    [
        pytest.param(None, None, None, None, id="plain"),
        pytest.param([None, None], None, None, None, id="nulls"),
        pytest.param([["lora1"], ["lora1"]], "lora1", "lora1", None, id="adapter"),
        pytest.param(None, "lora1", "lora1", None, id="adapter-without-extras"),
        pytest.param([["tenant-a"], None], None, None, "tenant-a", id="salt"),
        pytest.param([["lora1", "s"], ["lora1"]], "lora1", "lora1", "s", id="both"),
    ],
)
@pytest.mark.lesson("X10")
def test_adapters_and_salts_keep_prompts_apart(
    extra_keys: Any, lora_name: str | None, adapter: str | None, salt: str | None
) -> None:
    fleet, text = Fleet(), prompt(1, 3)
    fleet.apply(0, stored(text, 0, 2, extra_keys=extra_keys, lora_name=lora_name))
    later = [[lora_name]] if lora_name else None
    fleet.apply(0, stored(text, 2, 3, extra_keys=later, lora_name=lora_name))

    for asked in [(None, None), ("lora1", None), (None, "tenant-a"), ("lora1", "s")]:
        expected = 12 if asked == (adapter, salt) else 0
        assert fleet.hits(text, *asked)[0] == expected


@pytest.mark.lesson("X12")
def test_a_block_with_media_is_no_block_of_text() -> None:
    fleet, text = Fleet(), prompt(1, 3)

    fleet.apply(0, stored(text, 0, 3, extra_keys=[None, [["image-hash", 0]], None]))

    assert fleet.hits(text) == [4, 0]


def test_an_adapter_known_by_number_only_is_asked_for_by_nobody() -> None:
    fleet, text = Fleet(), prompt(1, 2)

    fleet.apply(0, stored(text, 0, 2, lora_id=3))

    assert fleet.hits(text) == [0, 0]
    assert fleet.publisher(0).blocks == 2


@pytest.mark.parametrize("kind", ["sliding_window", "mamba", "brand-new"])
def test_caches_without_the_order_of_prefixes_give_no_credit(kind: str) -> None:
    fleet, text = Fleet(), prompt(1, 3)
    fleet.apply(0, stored(text, 0, 3, kv_cache_spec_kind="full_attention", group_idx=0))
    fleet.apply(0, stored(prompt(2, 3), 0, 3, kv_cache_spec_kind=kind, group_idx=1))

    fleet.apply(0, removed(text, 1, group_idx=1))

    assert fleet.hits(text) == [12, 0]
    assert fleet.hits(prompt(2, 3)) == [8, 0]
    assert fleet.publisher(0).counts.uncredited == 3


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Stored([5], None, [1, 2, 3], 4), id="too-few-tokens"),
        pytest.param(Stored([5], None, [1, 2, 3, 4], 0), id="no-size"),
        pytest.param(Stored([5], None, [1, 2, 3, 4], -4), id="negative-size"),
        pytest.param(Stored([5], None, [1, 2, 3, -4], 4), id="negative-token"),
        pytest.param(Stored([5], None, [1, 2, 3, 2**40], 4), id="huge-token"),
        pytest.param(Stored([5], None, [1, 2, 3, "a"], 4), id="text"),
        pytest.param(Stored([5], None, [[1, 2]] * 4, 4), id="pairs"),
        pytest.param(Stored([], None, [], 4), id="nothing"),
    ],
)
def test_events_that_do_not_fit_together_are_counted(event: Stored) -> None:
    fleet = Fleet(1)

    fleet.apply(0, event)

    assert fleet.publisher(0).counts.misshaped == 1
    assert len(fleet.blocks) == 0


@pytest.mark.lesson("X02")
def test_a_block_in_two_memories_counts_once_in_the_faster() -> None:
    fleet, text = Fleet(), prompt(1, 6)
    fleet.apply(0, stored(text, 0, 6), stored(text, 0, 4, medium="CPU"))
    fleet.apply(0, stored(text, 0, 2, medium="DISK"))
    fleet.apply(0, removed(text, 5, 4, 3, 2, medium="GPU"), removed(text, 0, medium="GPU"))

    match = fleet.blocks.match(fleet.keys(text))

    assert match.depths.tolist() == [4, 0]
    assert match.slower is not None
    assert match.slower[HOST - HOST].tolist() == [3, 0]
    assert match.slower[REMOTE - HOST].tolist() == [0, 0]
    assert fleet.publisher(0).blocks == 4


def test_a_third_memory_counts_as_remote() -> None:
    fleet, text = Fleet(), prompt(1, 3)
    fleet.apply(0, stored(text, 0, 3), stored(text, 0, 3, medium="CPU"))
    fleet.apply(0, stored(text, 0, 3, medium="DISK"), removed(text, 0, 1, 2))

    fleet.apply(0, removed(text, 2, medium="CPU"))

    match = fleet.blocks.match(fleet.keys(text))
    assert match.slower is not None
    assert match.slower.tolist() == [[2, 0], [1, 0]]


def test_a_request_in_flight_joins_what_events_say() -> None:
    fleet, text = Fleet(), prompt(1, 4)
    fleet.apply(0, stored(text, 0, 2))
    masks = fleet.blocks.masks
    for key in fleet.keys(text)[2:]:
        masks[key] = fleet.blocks.intern(masks.get(key, 0) | 1)

    assert fleet.hits(text) == [16, 0]

    fleet.apply(0, Cleared())
    assert fleet.hits(text) == [0, 0]
    assert len(masks) == 2


@pytest.mark.parametrize("first", [1, 2**50])
def test_hashes_that_mean_other_blocks_elsewhere_do_no_harm(first: int) -> None:
    """Counters instead of digests, and digests of another function."""
    fleet, one, two = Fleet(), prompt(1, 8), prompt(2, 8)

    def numbered(text: Tokens) -> Stored:
        return Stored(list(range(first, first + 8)), None, list(text), BLOCK)

    fleet.apply(0, numbered(one))
    fleet.apply(1, numbered(two))
    fleet.apply(0, Removed([first + 7]))

    assert fleet.hits(one) == [28, 8]
    assert fleet.hits(two) == [8, 32]

    fleet.apply(1, Removed([first + 6, first + 7]))
    assert fleet.hits(two) == [8, 24]


def test_an_instance_that_is_gone_leaves_nothing() -> None:
    fleet = Fleet()
    for number in range(20):
        fleet.apply(number % 2, stored(prompt(number, 8), 0, 8))

    fleet.index.close(0)
    fleet.index.close(1)

    assert len(fleet.blocks) == 0


def test_a_large_index_is_cleaned_in_steps_and_answers_at_once() -> None:
    fleet = Fleet(2)
    for number in range(1200):
        fleet.apply(number % 2, stored(prompt(number, 8), 0, 8))
    fleet.index.clear(0)

    assert fleet.index.is_sweeping(0)
    assert fleet.hits(prompt(0, 8)) == [0, 8]
    fleet.apply(0, stored(prompt(7, 4), 0, 4))

    assert not fleet.index.is_sweeping(0)
    assert fleet.hits(prompt(7, 8)) == [16, 32]
    assert fleet.publisher(0).blocks == 4


def test_memory_is_bounded_and_the_oldest_blocks_go() -> None:
    fleet = Fleet(1, max_blocks=5000)

    for number in range(1, 2000):
        fleet.apply(0, stored(prompt(number, 10), 0, 10))

    assert len(fleet.blocks) <= 5000
    assert fleet.hits(prompt(1, 10))[0] == 2 * BLOCK
    assert fleet.publisher(0).blocks == len(fleet.blocks)
