"""Two lines and bars: what is drawn is what is known, nothing is joined over a gap."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.console.racecharts import Bar, Line, RaceChart, lane


def make_chart(*lines: list[float | None], **options: Any) -> RaceChart:
    given_options: dict[str, Any] = {
        "label": lambda value: f"{value:g}",
        "when": str,
        "span": 10.0,
    } | options
    return RaceChart(
        key="x",
        title="<Title>",
        note="",
        moments=[float(at) for at in range(len(lines[0]))],
        lines=[Line(f"line {place}", values, place == 1) for place, values in enumerate(lines)],
        **given_options,
    )


def points_of(chart: RaceChart) -> list[list[tuple[int, int]]]:
    found = re.findall(r'points="([^"]+)"', chart.drawing)
    return [[(int(x), int(y)) for x, y in re.findall(r"(-?\d+),(-?\d+)", one)] for one in found]


def test_both_lines_are_drawn_and_told_with_their_last_values() -> None:
    chart = make_chart([1.0, 2.0, 3.0], [3.0, 2.0, 1.5])

    assert len(points_of(chart)) == 2
    assert chart.description == "line 0: 3. line 1: 1.5."
    assert "&lt;Title&gt;" in chart.drawing


def test_a_gap_is_not_joined() -> None:
    chart = make_chart([1.0, 2.0, None, 3.0, 4.0], [None] * 5)

    assert [len(run) for run in points_of(chart)] == [2, 2]


def test_nothing_known_is_an_empty_frame_that_says_so() -> None:
    chart = make_chart([None, None], [None, None])

    assert points_of(chart) == []
    assert chart.description == "No data in this period."


def test_time_goes_from_left_to_right_and_the_newest_is_at_the_right_end() -> None:
    values: list[float | None] = [1.0] * 12

    (run, _) = points_of(make_chart(values, values))

    assert [x for x, _y in run] == sorted(x for x, _y in run)
    assert run[-1][0] == 1000


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=20), st.booleans())
def test_a_larger_value_is_never_lower(values: list[float], is_log: bool) -> None:
    chart = make_chart(list(values), list(values), least=0.01 if is_log else None)

    (run, _) = points_of(chart)
    for (value, (_x, y)), (other, (_x2, y2)) in zip(
        zip(values, run, strict=True), list(zip(values, run, strict=True))[1:], strict=False
    ):
        assert value < other or y <= y2
        assert -1 <= y <= 1000


def test_names_of_lines_that_end_together_do_not_cover_each_other() -> None:
    drawing = make_chart([1.0, 2.0], [1.0, 2.01]).drawing

    heights = [int(y) for y in re.findall(r'x="83\.5%" y="(\d+)"', drawing)]
    assert abs(heights[0] - heights[1]) >= 15


def test_bars_show_what_runs_and_what_waits_and_stay_inside() -> None:
    drawing = lane("k", [("A & B", [Bar(10, 0), Bar(50, 400)])], top=100, title="t", told="finding")

    tops = [float(y) for y in re.findall(r'stroke="currentColor"[^>]* y="([-\d.]+)"', drawing)]
    assert drawing.count("v-") == 2
    assert len(tops) == 1
    assert tops[0] >= 0
    assert "A &amp; B" in drawing
    assert "finding" in drawing


@pytest.mark.parametrize("bars", [[], [Bar(0, 0)]])
def test_idle_engines_are_an_empty_lane(bars: list[Bar]) -> None:
    assert "v-" not in lane("k", [("A", bars)], top=1, title="t", told="")
