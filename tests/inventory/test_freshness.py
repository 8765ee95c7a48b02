"""Ten minutes decide what an observation still says."""

from datetime import UTC, datetime, timedelta

import pytest

from inventory.freshness import is_stale

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


@pytest.mark.parametrize(("seconds", "expected"), [(0, False), (600, False), (601, True)])
def test_an_observation_is_stale_after_ten_minutes(seconds: int, expected: bool) -> None:
    assert is_stale(NOW - timedelta(seconds=seconds), now=NOW) is expected


def test_what_was_never_observed_is_stale() -> None:
    assert is_stale(None, now=NOW)
