"""The two clocks."""

import itertools
from datetime import UTC, datetime

from routing.servers import clock


def test_records_have_the_time_of_the_calendar() -> None:
    assert abs(clock.unix_now() - datetime.now(tz=UTC).timestamp()) < 5


def test_durations_are_finer_than_a_millisecond_and_never_negative() -> None:
    readings = [clock.monotonic() for _ in range(1000)]

    steps = [later - earlier for earlier, later in itertools.pairwise(readings)]
    assert min(steps) >= 0
    assert 0 < sum(steps) / len(steps) < 0.001
