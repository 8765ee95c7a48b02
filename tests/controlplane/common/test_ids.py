"""Identifiers."""

import time

from controlplane.common.ids import uuid7


def test_identifiers_are_version_7_and_differ() -> None:
    made = {uuid7() for _ in range(1000)}

    assert len(made) == 1000
    assert {identifier.version for identifier in made} == {7}
    assert {identifier.variant for identifier in made} == {"specified in RFC 4122"}


def test_later_identifiers_sort_behind_earlier_ones() -> None:
    first = uuid7()
    until = time.time_ns() + 2_000_000
    while time.time_ns() < until:
        pass

    assert first < uuid7()
