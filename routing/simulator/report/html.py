"""A report as one HTML file: no script, nothing from elsewhere, light and dark, with the numbers of
every plot as a table beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from html import escape
from pathlib import Path

from routing.simulator.report.messages import Language, say
from routing.simulator.report.svg import SHAPES, Chart, drawn, labels_of

_SIDES = {True: ' class="n"', False: ""}
"""Of columns of numbers, and of others."""

Cell = str | int | float | Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A `None` is shown as not known. Columns of numbers only stand to the right."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what is under it, in this order."""

    title: str
    text: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole report."""

    title: str
    text: tuple[str, ...]
    sections: tuple[Section, ...]
    language: Language = "en"


def html_of(page: Page) -> str:
    """The file's text; equal pages give equal text. Everything in it is escaped."""
    parts = [
        "<!doctype html>",
        f'<html lang="{page.language}"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(page.title)}</title><style>{_style()}</style></head><body><main>",
        f"<h1>{escape(page.title)}</h1>",
        *_paragraphs(page.text),
        *(_section(section, page.language) for section in page.sections),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _section(section: Section, language: Language) -> str:
    figures = [_figure(chart, language) for chart in section.charts]
    parts = [
        "<section>",
        f"<h2>{escape(section.title)}</h2>",
        *_paragraphs(section.text),
        *(["<div class='plots'>", *figures, "</div>"] if figures else []),
        *(_table(table) for table in section.tables),
        "</section>",
    ]
    return "\n".join(parts)


def _paragraphs(text: Sequence[str]) -> list[str]:
    return [f"<p>{escape(line)}</p>" for line in text]


def _figure(chart: Chart, language: Language) -> str:
    picture = drawn(chart) or f"<p>{escape(say('no-data', language))}</p>"
    marks = {(mark.label, mark.x): mark.y for mark in chart.marks}
    rates = sorted({x for line in chart.lines for x, _ in line.points} | {x for _, x in marks})
    columns = [(line.name, dict(line.points)) for line in chart.lines]
    columns += [
        (label, {x: y for (name, x), y in marks.items() if name == label})
        for label in dict.fromkeys(mark.label for mark in chart.marks)
    ]
    numbers = Table(
        caption=f"{chart.title}: {chart.y_title}",
        head=(chart.x_title, *(name for name, _ in columns)),
        rows=tuple((rate, *(points.get(rate) for _, points in columns)) for rate in rates),
    )
    return (
        f"<figure><figcaption>{escape(chart.title)}</figcaption>{picture}{_legend(chart)}"
        f"<details><summary>{escape(say('numbers', language))}</summary>{_table(numbers)}"
        "</details></figure>"
    )


def _legend(chart: Chart) -> str:
    """Of the published points; lines have their names beside them."""
    told = [
        f"{SHAPES[place % len(SHAPES)][0]} {escape(label)}"
        for place, label in enumerate(labels_of(chart))
    ]
    return f"<p class='legend'>{' · '.join(told)}</p>" if told else ""


def _table(table: Table) -> str:
    are_numbers = [
        all(not isinstance(row[place], str) for row in table.rows)
        for place in range(len(table.head))
    ]
    head = "".join(
        f'<th scope="col"{_SIDES[number]}>{escape(text)}</th>'
        for text, number in zip(table.head, are_numbers, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row"{_SIDES[number]}>{shown(cell)}</th>'
            if place == 0
            else f"<td{_SIDES[number]}>{shown(cell)}</td>"
            for place, (cell, number) in enumerate(zip(row, are_numbers, strict=True))
        )
        + "</tr>"
        for row in table.rows
    )
    return (
        f"<div class='wide' tabindex='0' role='region' aria-label='{escape(table.caption)}'>"
        f"<table><caption>{escape(table.caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def shown(cell: Cell) -> str:
    """A cell's text, escaped; fewer decimals the larger it is."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        size = abs(cell)
        digits = 3 if size < 1 else 2 if size < 100 else 1 if size < 1000 else 0
        return f"{cell:,.{digits}f}"
    return escape(f"{cell:,}" if isinstance(cell, int) else str(cell))


@lru_cache(maxsize=1)
def _style() -> str:
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")
