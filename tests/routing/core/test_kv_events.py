"""Hashes of engines."""

import pytest

from routing.core.kv_events import is_digest


@pytest.mark.parametrize(("name", "expected"), [(7, False), (2**40, True), (-1, True)])
def test_digests_are_told_from_counters(name: int, expected: bool) -> None:
    assert is_digest(name) is expected
