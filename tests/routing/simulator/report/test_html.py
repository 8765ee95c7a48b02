"""Reports as one file."""

import re
from decimal import Decimal

import pytest

from routing.simulator.report.html import Page, Section, Table, html_of, shown
from routing.simulator.report.svg import Chart, Line, Mark
from tests.routing.simulator.report.reading import read

TABLE = Table(
    caption="Numbers", head=("policy", "value", "cost"),
    rows=(("<consort>", 1234.5, Decimal("0.0050")), ("random", None, None)),
)  # fmt: skip
CHART = Chart(
    key="c", title="Throughput", x_title="rate", y_title="tokens",
    lines=(Line(name="consort", points=((10.0, 100.0), (20.0, None))),),
    marks=(Mark(x=20.0, y=90.0, label="published"),),
)  # fmt: skip


def _page(language: str = "en") -> str:
    section = Section(title="One & all", text=("a < b",), charts=(CHART,), tables=(TABLE,))
    return html_of(Page(title="Race", text=("About.",), sections=(section,), language=language))


def test_the_file_closes_all_that_it_opens() -> None:
    tags = [tag for tag, _ in read(_page()).seen]

    assert tags.count("h1") == 1
    assert tags.count("figure") == 1


def test_the_file_asks_nobody_for_anything() -> None:
    page = _page()

    assert not re.search(r"<script|<link|@import|src=|href=|url\(|https?:", page)


def test_both_themes_are_in_it() -> None:
    assert "prefers-color-scheme:dark" in _page()


def test_every_plot_has_its_numbers_beside_it() -> None:
    page = _page()
    figure = page[page.index("<figure>") : page.index("</figure>")]

    assert "<svg" in figure
    assert (
        '<th scope="row" class="n">10.00</th><td class="n">100.0</td><td class="n">-</td>' in figure
    )
    assert (
        '<th scope="row" class="n">20.00</th><td class="n">-</td><td class="n">90.00</td>' in figure
    )


def test_texts_are_escaped() -> None:
    page = _page()

    assert "&lt;consort&gt;" in page
    assert "One &amp; all" in page
    assert "<consort>" not in page


def test_the_page_says_its_language_and_speaks_it() -> None:
    assert '<html lang="ko">' in _page("ko")
    assert "숫자" in _page("ko")


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "-"),
        (0.1234, "0.123"),
        (-0.5, "-0.500"),
        (12.345, "12.35"),
        (123.45, "123.5"),
        (12345.6, "12,346"),
        (12345, "12,345"),
        (Decimal("1.4000"), "1.4000"),
    ],
)
def test_a_number_has_fewer_decimals_the_larger_it_is(cell: object, text: str) -> None:
    assert shown(cell) == text
