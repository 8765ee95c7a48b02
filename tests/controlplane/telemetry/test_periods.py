"""Periods are half open, have a zone and an end."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.telemetry.errors import PeriodError
from controlplane.telemetry.periods import period_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({}, (NOW - DAY, NOW), id="the-last-day"),
        pytest.param(
            {"from": "2026-11-30T00:00:00Z"}, (NOW - timedelta(hours=12), NOW), id="until-now"
        ),
        pytest.param(
            {"from": "2026-11-01T09:00:00 09:00", "to": "2026-11-02T00:00:00Z"},
            (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)),
            id="a-plus-that-became-a-space",
        ),
    ],
)
def test_period(query: dict[str, str], expected: tuple[datetime, datetime]) -> None:
    assert period_of(query, default=DAY, now=NOW) == expected


@pytest.mark.parametrize(
    "query",
    [
        {"from": "yesterday"},
        {"from": "2026-11-30T00:00:00"},
        {"from": "2026-13-30T00:00:00Z"},
        {"from": "2026-11-30T12:00:00Z"},
        {"from": "2020-11-30T12:00:00Z"},
        {"from": "9999-12-31T00:00:00Z", "to": "9999-12-31T23:59:59-14:00"},
        {"to": "0001-01-01T00:00:00Z"},
        {"from": "0001-01-01T00:00:00+14:00", "to": "0001-01-02T00:00:00Z"},
    ],
)
def test_a_period_that_cannot_be_used_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(PeriodError):
        period_of(query, default=DAY, now=NOW)


def test_the_last_day_of_the_calendar_is_a_period() -> None:
    query = {"from": "9999-12-31T00:00:00Z", "to": "9999-12-31T01:00:00Z"}

    assert period_of(query, default=DAY, now=NOW)[1] - NOW > DAY
