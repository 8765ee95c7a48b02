"""Plots as SVG text."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from routing.simulator.report.svg import HEIGHT, MOST_LINES, WIDTH, Chart, Line, Mark, drawn, short
from tests.routing.simulator.report.reading import read


def _chart(*lines: Line, marks: tuple[Mark, ...] = (), is_log: bool = False) -> Chart:
    return Chart(
        key="k", title="Title", x_title="rate", y_title="tokens", lines=lines, marks=marks,
        is_log=is_log, finding="Words.",
    )  # fmt: skip


RISING = Line(name="consort", points=((10.0, 1.0), (20.0, 2.0), (30.0, 3.0)))

values = st.none() | st.floats(0, 1e9)
lines = st.lists(
    st.lists(values, min_size=1, max_size=6).map(
        lambda ys: Line(name="line", points=tuple((float(x), y) for x, y in enumerate(ys)))
    ),
    max_size=9,
)


@given(lines=lines, is_log=st.booleans())
def test_whatever_is_drawn_is_well_formed_and_inside(lines: list[Line], is_log: bool) -> None:
    picture = drawn(_chart(*lines, is_log=is_log))

    if not picture:
        return
    circles = [attributes for tag, attributes in read(picture).seen if tag == "circle"]
    assert circles
    for circle in circles:
        assert 0 <= float(circle["cx"] or "") <= WIDTH
        assert 0 <= float(circle["cy"] or "") <= HEIGHT


def test_what_is_unknown_breaks_the_line() -> None:
    points = ((1.0, 1.0), (2.0, 1.5), (3.0, None), (4.0, 2.0), (5.0, 2.5))

    picture = drawn(_chart(Line(name="a", points=points)))

    assert picture.count("<polyline") == 2
    assert picture.count("<circle") == 4


def test_nothing_known_draws_nothing() -> None:
    assert drawn(_chart(Line(name="a", points=((1.0, None),)))) == ""
    assert drawn(_chart()) == ""


def test_no_more_lines_than_can_be_told_apart() -> None:
    picture = drawn(_chart(*(Line(name=f"p{n}", points=RISING.points) for n in range(9))))

    assert picture.count('class="name') == MOST_LINES


def test_names_at_the_ends_do_not_meet() -> None:
    picture = drawn(_chart(*(Line(name=f"p{n}", points=RISING.points) for n in range(6))))

    heights = sorted(
        float(y) for y in re.findall(r'class="name s\d" x="\d+" y="([\d.]+)"', picture)
    )
    assert all(lower - upper >= 13.9 for upper, lower in pairwise(heights))


def test_a_published_point_is_marked_with_its_label() -> None:
    picture = drawn(_chart(RISING, marks=(Mark(x=20.0, y=2.5, label="published <2026>"),)))

    assert "published &lt;2026&gt;" in picture
    assert picture.count('class="mark"') == 1


def test_a_plot_is_named_and_told_in_words() -> None:
    picture = drawn(_chart(RISING))

    assert 'role="img" aria-labelledby="k-t k-d"' in picture
    assert '<title id="k-t">Title</title><desc id="k-d">Words.</desc>' in picture


def test_a_plot_needs_neither_style_attributes_nor_scripts() -> None:
    picture = drawn(_chart(RISING, is_log=True))

    assert "style=" not in picture
    assert "script" not in picture


def test_numbers_of_an_axis_are_short() -> None:
    assert [short(value) for value in (0.01, 5.0, 20_000.0, 2_000_000.0)] == [
        "0.01", "5", "20,000", "2 M",
    ]  # fmt: skip
