"""The roles of a node in time."""

from datetime import UTC, datetime, timedelta

from controlplane.console.rolebar import lanes_of, role_bar
from controlplane.console.selectors.fleet import Span, ranges

NOW = datetime(2026, 11, 18, tzinfo=UTC)


def span(role: str, start: int, end: int | None, *slots: int) -> Span:
    return Span(
        slots=slots or (0, 1), role=role, pool="chat", start=NOW - timedelta(days=start),
        end=None if end is None else NOW - timedelta(days=end), simulated=False,
    )  # fmt: skip


def test_slots_with_the_same_history_share_a_lane() -> None:
    together = span("both", 30, 6, 0, 1, 2)
    spans = [together, span("decode", 6, None, 0, 1), span("both", 6, None, 2)]

    bar = role_bar(spans, now=NOW)

    assert [slots for slots, _spans in lanes_of(spans)] == [[0, 1], [2]]
    assert bar.drawing.count('<text class="lab"') == 2
    assert bar.drawing.count("url(#f-b)") == 3
    assert bar.drawing.count("url(#f-d)") == 1


def test_a_short_span_at_the_right_edge_stays_inside() -> None:
    bar = role_bar([span("both", 30, 0), span("decode", 0, None)], now=NOW)

    assert 'x="99.70%" width="0.30%"' in bar.drawing


def test_the_axis_starts_with_the_ledger_or_35_days_ago() -> None:
    assert role_bar([span("both", 400, None)], now=NOW).start == NOW - timedelta(days=35)
    assert role_bar([span("both", 3, None)], now=NOW).start == NOW - timedelta(days=3)


def test_without_spans_there_is_no_picture() -> None:
    assert role_bar([], now=NOW).drawing == ""


def test_runs_of_slots_are_written_as_ranges() -> None:
    assert ranges([0, 1, 2, 5]) == "0\N{EN DASH}2, 5"
    assert ranges([]) == ""
