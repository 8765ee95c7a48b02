"""Line charts drawn on the server, each with the same data as a table beside it.

The outer drawing has no viewBox, so that letters never shrink; lines are in an inner one that is
stretched. Gaps are hatched and named, never joined. At most 300 points a series.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from controlplane.console.ticks import LEAST_TOP, ticks

MAX_POINTS = 300
_TOP = 8
_PLOT_SHARE = 0.86
"""Share of the width that the plot takes; the rest holds the label of the last value."""


@dataclass(frozen=True, slots=True)
class Point:
    """One moment of a series; None is a gap."""

    at: datetime
    value: float | None


@dataclass(frozen=True, slots=True)
class LineChart:
    """A chart in words and data; `drawing` makes the picture."""

    key: str
    """Unique on the page; ids of title and description derive from it."""
    title: str
    note: str
    """Unit, source and window."""
    unit: str
    points: Sequence[Point]
    label: Callable[[float], str]
    """Text of a value, with its unit where the chart needs it."""
    when: Callable[[datetime], str]
    """Text of a moment, for the axis and the table."""
    target: float | None = None
    target_label: str = ""
    tone: str = "a"
    """Letter of the colour class of the line."""
    height: int = 150
    finding: str = field(default="")
    """The finding in words; made from the data when empty."""

    @property
    def rows(self) -> list[tuple[str, str | None]]:
        """The drawn numbers, for the table; None is "no data"."""
        return [
            (self.when(point.at), None if point.value is None else self.label(point.value))
            for point in self.drawn
        ]

    @property
    def drawn(self) -> list[Point]:
        """The points after thinning."""
        return thin(self.points)

    @property
    def description(self) -> str:
        """What the chart shows, in words, with smallest, largest and last value."""
        known = [point.value for point in self.points if point.value is not None]
        if not known:
            return _("No data in this period.")
        facts = {
            "low": self.label(min(known)),
            "high": self.label(max(known)),
            "last": self.label(known[-1]),
        }
        told = _("Between %(low)s and %(high)s, last %(last)s.") % facts
        return f"{self.finding} {told}".strip()

    @property
    def drawing(self) -> SafeString:
        """The picture; empty when nothing is known."""
        return _draw(self)


def thin(points: Sequence[Point]) -> list[Point]:
    """At most MAX_POINTS points: smallest and largest of each bucket, in time's order."""
    if len(points) <= MAX_POINTS:
        return list(points)
    size = -(-len(points) // (MAX_POINTS // 2))
    kept: list[Point] = []
    for start in range(0, len(points), size):
        bucket = points[start : start + size]
        known = [point for point in bucket if point.value is not None]
        if not known:
            kept.append(bucket[0])
            continue
        ends = {min(known, key=_value), max(known, key=_value)}
        kept.extend(sorted(ends, key=lambda point: point.at))
    return kept


def _value(point: Point) -> float:
    return point.value if point.value is not None else 0.0


def _draw(chart: LineChart) -> SafeString:
    points = chart.drawn
    known = [_value(point) for point in points if point.value is not None]
    if not known or len(points) < 2:
        return mark_safe("")
    highest = max([*known, chart.target or 0.0])
    plot = _Plot(chart, points, top=highest * 1.12 if highest > LEAST_TOP else 1.0)
    parts = [
        f'<svg class="chart" width="100%" height="{chart.height}" role="img"'
        f' aria-labelledby="{chart.key}-t {chart.key}-d">',
        f'<title id="{chart.key}-t">{escape(chart.title)}</title>',
        f'<desc id="{chart.key}-d">{escape(chart.description)}</desc>',
        *plot.axes(), plot.lines(), *plot.gaps(), *plot.goal(), *plot.last(), "</svg>",
    ]  # fmt: skip
    return mark_safe("".join(parts))  # noqa: S308 - every text in it is escaped


class _Plot:
    """Coordinates of one chart: percent across, pixels down."""

    def __init__(self, chart: LineChart, points: Sequence[Point], *, top: float) -> None:
        self.chart, self.points, self.top = chart, points, top
        self.depth = chart.height - _TOP - 22
        first, last = points[0].at, points[-1].at
        self.start, self.span = first, max((last - first).total_seconds(), 1.0)

    def across(self, at: datetime) -> float:
        """Place of a moment in percent of the drawing."""
        return 100 * _PLOT_SHARE * (at - self.start).total_seconds() / self.span

    def down(self, value: float) -> float:
        """Place of a value in pixels from the top."""
        return _TOP + self.depth * (1 - value / self.top)

    def axes(self) -> list[str]:
        base, right = _TOP + self.depth, f"{100 * _PLOT_SHARE:g}%"
        parts = [f'<line class="axis" x1="0" x2="{right}" y1="{base}" y2="{base}"/>']
        for value in ticks(self.top, most=4):
            y, label = self.down(value), escape(self.chart.label(value))
            parts += [
                f'<line class="grid" x1="0" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>',
                f'<text class="halo" x="0" y="{y - 4:.1f}">{label}</text>',
            ]
        middle = ((0.5, "middle"),) if len(self.points) > 4 else ()
        for share, anchor in ((0.0, "start"), *middle, (1.0, "end")):
            at = self.points[round(share * (len(self.points) - 1))].at
            parts.append(
                f'<text x="{self.across(at):.2f}%" y="{base + 17}" text-anchor="{anchor}">'
                f"{escape(self.chart.when(at))}</text>"
            )
        return parts

    def lines(self) -> str:
        runs: list[list[str]] = [[]]
        for point in self.points:
            if point.value is None:
                runs.append([])
                continue
            x = 1000 * (point.at - self.start).total_seconds() / self.span
            runs[-1].append(f"{x:.1f},{1000 * (1 - point.value / self.top):.1f}")
        drawn = "".join(
            f'<polyline class="ln c-{self.chart.tone}" points="{" ".join(run)}"/>'
            for run in runs
            if len(run) > 1
        )
        return (
            f'<svg x="0" y="{_TOP}" width="{100 * _PLOT_SHARE:g}%" height="{self.depth}"'
            ' viewBox="0 0 1000 1000" preserveAspectRatio="none" overflow="visible">'
            f"{drawn}</svg>"
        )

    def gaps(self) -> list[str]:
        parts: list[str] = []
        for before, after in _gaps(self.points):
            left, right = self.across(before.at), self.across(after.at)
            parts.append(
                f'<rect x="{left:.2f}%" width="{max(right - left, 0.4):.2f}%" y="{_TOP}"'
                f' height="{self.depth}" fill="url(#f-gap)"/>'
            )
            if right - left > 12:
                text, middle = escape(_("no data")), (left + right) / 2
                parts.append(
                    f'<text class="halo" x="{middle:.2f}%" y="{_TOP + self.depth / 2:.0f}"'
                    f' text-anchor="middle">{text}</text>'
                )
        return parts

    def goal(self) -> list[str]:
        if self.chart.target is None:
            return []
        y, right = self.down(self.chart.target), f"{100 * _PLOT_SHARE:g}%"
        return [
            f'<line x1="0" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="c-k"'
            ' stroke="currentColor" stroke-dasharray="4 3"/>',
            f'<text class="halo" x="99%" y="{y - 5:.1f}" text-anchor="end">'
            f"{escape(self.chart.target_label)}</text>",
        ]

    def last(self) -> list[str]:
        end = next(point for point in reversed(self.points) if point.value is not None)
        x, y = self.across(end.at), self.down(_value(end))
        return [
            f'<circle class="pt c-{self.chart.tone}" cx="{x:.2f}%" cy="{y:.1f}" r="3"/>',
            f'<text class="b c-{self.chart.tone} halo" x="{x + 1:.2f}%" y="{y + 4:.1f}">'
            f"{escape(self.chart.label(_value(end)))}</text>",
        ]


def _gaps(points: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Pairs of known neighbours (or ends) around each run of unknown points."""
    gaps: list[tuple[Point, Point]] = []
    opened: Point | None = None
    for before, after in pairwise([points[0], *points]):
        if after.value is None and opened is None:
            opened = before
        elif after.value is not None and opened is not None:
            gaps.append((opened, after))
            opened = None
    if opened is not None:
        gaps.append((opened, points[-1]))
    return gaps
