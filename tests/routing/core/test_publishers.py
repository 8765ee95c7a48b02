"""What is kept per publisher: bits, media, groups of layers."""

from typing import Any

from routing.core.block_masks import DEVICE, HOST, REMOTE
from routing.core.compact_map import CompactMap
from routing.core.kv_events import Stored, is_digest
from routing.core.publishers import Publisher


def publisher() -> Publisher:
    return Publisher(3, CompactMap())


def event(**fields: Any) -> Stored:
    return Stored([1], None, [], 16, **fields)


def test_media_have_planes_in_order_of_their_first_event() -> None:
    found = publisher()

    planes = [found.plane(medium) for medium in (None, "GPU", "CPU", "DISK", "S3", "CPU")]

    assert planes == [DEVICE, DEVICE, HOST, REMOTE, REMOTE, HOST]
    assert found.bit("CPU") == 1 << 4 * 3 + HOST
    assert found.bits & found.device_bit


def test_one_group_of_layers_is_followed() -> None:
    found = publisher()

    answers = [
        found.credits(event(kv_cache_spec_kind=kind, group_idx=group))
        for kind, group in [
            ("sliding_window", 0), ("full_attention", 1), ("full_attention", 2),
            ("mla_attention", 1), ("full_attention", None), ("mamba", None),
        ]
    ]  # fmt: skip

    assert answers == [False, True, False, True, True, False]
    assert found.other_groups == {0, 2}


def test_small_numbers_are_no_digests() -> None:
    assert [is_digest(name) for name in (0, 5, 2**41, -(2**62), b"x" * 32)] == [
        False,
        False,
        True,
        True,
        False,
    ]
