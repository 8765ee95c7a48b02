"""Bars: shares of the whole, patterns by letter, the same in words."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.console import svg


def test_a_bar_shows_its_segments_in_percent_and_says_them() -> None:
    drawn = svg.bar([svg.Segment("p", 1), svg.Segment("d", 3)], total=4, label="1 P, 3 D")

    assert 'aria-label="1 P, 3 D"' in drawn
    assert 'width="25.000%"' in drawn
    assert 'width="75.000%"' in drawn


def test_a_bar_without_a_label_is_hidden_from_screen_readers() -> None:
    assert 'aria-hidden="true"' in svg.bar([svg.Segment("m", 1)], total=2, label="")


def test_labels_are_escaped() -> None:
    assert "<b>" not in svg.bar([], total=1, label="<b>")


def test_a_meter_without_a_value_is_an_empty_bed() -> None:
    assert "url(#f-m)" not in svg.meter(None)
    assert "url(#f-m)" not in svg.meter(0.0)
    assert 'width="100.000%"' in svg.meter(1.7)


def test_squares_stand_side_by_side() -> None:
    drawn = svg.squares(["p", "d"], label="1 prefill, 1 decode")

    assert drawn.count('height="18"') == 2
    assert 'x="22"' in drawn


@given(st.lists(st.floats(0, 1e9), max_size=6))
def test_segments_never_leave_the_bar(sizes: list[float]) -> None:
    drawn = svg.bar(
        [svg.Segment("x", size) for size in sizes], total=max(sum(sizes) / 2, 1.0), label="bar"
    )

    assert 'width="-' not in drawn
    assert 'x="1000' not in drawn
