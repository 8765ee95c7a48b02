"""Charts draw gaps as gaps, stay small, and stand beside the very data that they draw."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controlplane.console.charts import MAX_POINTS, LineChart, Point, thin

START = datetime(2026, 11, 1, tzinfo=UTC)


def chart(*values: float | None, **overrides: Any) -> LineChart:
    points = [Point(START + timedelta(hours=place), value) for place, value in enumerate(values)]
    defaults: dict[str, Any] = {
        "key": "c", "title": "TTFT <p95>", "note": "s", "unit": "s", "points": points,
        "label": lambda value: f"{value:.2f}", "when": lambda at: f"{at:%H:%M}",
    }  # fmt: skip
    return LineChart(**defaults | overrides)


def test_a_gap_breaks_the_line_and_is_hatched_and_named() -> None:
    drawing = chart(1, 2, 3, None, None, None, 3, 2, 1).drawing

    assert drawing.count("<polyline") == 2
    assert "url(#f-gap)" in drawing
    assert "no data" in drawing


def test_without_a_known_value_there_is_no_picture_and_words_say_so() -> None:
    empty = chart(None, None, None)

    assert empty.drawing == ""
    assert empty.description == "No data in this period."


def test_the_description_names_smallest_largest_and_last() -> None:
    assert chart(3, 1, 2).description == "Between 1.00 and 3.00, last 2.00."


def test_titles_are_escaped() -> None:
    assert "<p95>" not in chart(1, 2).drawing


def test_the_target_line_fits_even_above_all_values() -> None:
    drawing = chart(0.1, 0.2, target=1.0, target_label="target 1.0 s").drawing

    assert "target 1.0 s" in drawing
    assert 'y1="-' not in drawing


def test_the_table_has_the_drawn_numbers_with_gaps_as_none() -> None:
    assert chart(1, None, 2).rows == [("00:00", "1.00"), ("01:00", None), ("02:00", "2.00")]


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=2000))
def test_thinning_keeps_order_extremes_and_the_bound(values: list[float | None]) -> None:
    points = [Point(START + timedelta(hours=place), value) for place, value in enumerate(values)]

    kept = thin(points)

    known = [value for value in values if value is not None]
    shown = [point.value for point in kept if point.value is not None]
    assert len(kept) <= MAX_POINTS
    assert [point.at for point in kept] == sorted(point.at for point in kept)
    assert not known or (min(shown), max(shown)) == (min(known), max(known))


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=50))
def test_every_chart_of_known_values_can_be_drawn(values: list[float]) -> None:
    assert chart(*values).drawing.startswith("<svg")
