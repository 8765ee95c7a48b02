"""Ages: fresh, stale over two minutes, last known over ten."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.console.freshness import Source


@pytest.mark.parametrize(
    ("age", "expected", "level"),
    [(5, 0, "fresh"), (150, 0, "stale"), (700, 0, "last-known"), (3500, 3600, "fresh"),
     (3800, 3600, "stale"), (-5, 0, "fresh")],
)  # fmt: skip
def test_the_level_follows_from_the_age_of_the_data(age: int, expected: int, level: str) -> None:
    source = Source("routers", datetime.now(UTC) - timedelta(seconds=age), expected)

    assert source.level == level


def test_a_source_that_never_answered_has_no_age() -> None:
    source = Source("routers", None)

    assert (source.level, source.seconds) == ("none", None)
