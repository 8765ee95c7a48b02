"""The roles of a node in time."""

from datetime import UTC, datetime, timedelta

from controlplane.console.rolebar import role_bar
from controlplane.console.selectors.fleet import Span, ranges

NOW = datetime(2026, 11, 18, tzinfo=UTC)


def span(role: str, start: int, end: int | None, slots: str = "0-1") -> Span:
    return Span(
        slots=slots, role=role, pool="chat", start=NOW - timedelta(days=start), simulated=False,
        end=None if end is None else NOW - timedelta(days=end),
    )  # fmt: skip


def test_each_set_of_slots_has_a_lane_and_spans_their_patterns() -> None:
    bar = role_bar(
        [span("both", 30, 6), span("decode", 6, None), span("both", 6, None, "2")], now=NOW
    )

    assert bar.drawing.count('<text class="lab"') == 2
    assert bar.drawing.count("url(#f-b)") == 2
    assert bar.drawing.count("url(#f-d)") == 1


def test_the_axis_starts_with_the_ledger_or_35_days_ago() -> None:
    assert role_bar([span("both", 400, None)], now=NOW).start == NOW - timedelta(days=35)
    assert role_bar([span("both", 3, None)], now=NOW).start == NOW - timedelta(days=3)


def test_without_spans_there_is_no_picture() -> None:
    assert role_bar([], now=NOW).drawing == ""


def test_runs_of_slots_are_written_as_ranges() -> None:
    assert ranges([0, 1, 2, 5]) == "0\N{EN DASH}2, 5"
    assert ranges([]) == ""
