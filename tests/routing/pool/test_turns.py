"""Readings of many endpoints fall apart, and those of one are where they were."""

import itertools

from routing.pool import turns


def test_endpoints_are_read_one_after_the_other() -> None:
    shares = sorted(turns.share_of(f"amd-mi325x-{number}") for number in range(100))

    gaps = [later - earlier for earlier, later in itertools.pairwise(shares)]
    assert 0 <= shares[0] < shares[-1] < 1
    assert max(gaps) < 0.1


def test_a_name_has_its_turn_in_every_process() -> None:
    assert turns.share_of("a") == turns.share_of("a") == 0xE8B7BE43 / 2**32
