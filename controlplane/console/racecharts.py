"""Drawings of a live race: two lines in one chart, and a bar for each engine.

The same rules as in `charts`: text outside the stretched part, colours by class. Coordinates are
whole numbers, since the drawings are sent again with each poll.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from controlplane.console.ticks import LEAST_TOP, ticks

_TOP, _BOTTOM = 8, 22
_PLOT = 82
"""Percent of the width that the plot takes; the rest holds the names of the lines."""
_LEAST_DISTANCE = 15.0
"""Pixels between two names."""
_LANE_HEIGHT, _LANE_DEPTH = 140, 110
_BAR_SHARE, _GROUP_GAP = 0.72, 1.0
"""Of a bar's place that it fills; places between two classes."""

Value = float | None


@dataclass(frozen=True, slots=True)
class Line:
    """One series."""

    name: str
    values: Sequence[Value]
    is_ours: bool
    """Drawn in the accent, and with the stronger line."""


@dataclass(frozen=True, slots=True)
class RaceChart:
    """Two series over virtual time, with the words that say the same."""

    key: str
    title: str
    note: str
    moments: Sequence[float]
    """Virtual seconds."""
    lines: Sequence[Line]
    label: Callable[[float], str]
    when: Callable[[float], str]
    span: float
    """Virtual seconds from the left to the right end."""
    least: float | None = None
    """Where a logarithmic scale begins; None is a linear one from 0."""
    most: float | None = None
    """Where a linear scale ends; None fits the data."""
    target: float | None = None
    target_label: str = ""
    height: int = 150
    _scale: "_Scale" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_scale", _Scale(self))

    @property
    def description(self) -> str:
        """The last values in words."""
        last = [(line.name, _last(line.values)) for line in self.lines]
        told = [
            _("%(name)s: %(value)s.") % {"name": name, "value": self.label(value)}
            for name, value in last
            if value is not None
        ]
        return " ".join(told) or _("No data in this period.")

    @property
    def drawing(self) -> SafeString:
        """The picture; an empty frame when nothing is known."""
        parts = [
            f'<svg class="chart" width="100%" height="{self.height}" role="img"'
            f' aria-labelledby="{self.key}-t {self.key}-d">',
            f'<title id="{self.key}-t">{escape(self.title)}</title>',
            f'<desc id="{self.key}-d">{escape(self.description)}</desc>',
            *self._scale.axes(),
            self._curves(),
            *self._scale.labels(),
            *self._scale.goal(),
            *self._names(),
            "</svg>",
        ]
        return mark_safe("".join(parts))  # noqa: S308 - every text in it is escaped

    def _curves(self) -> str:
        drawn = "".join(
            f'<polyline class="ln {_look(line)}" points="{" ".join(run)}"/>'
            for line in self.lines
            for run in self._runs(line)
        )
        depth = self.height - _TOP - _BOTTOM
        return (
            f'<svg y="{_TOP}" width="{_PLOT}%" height="{depth}" viewBox="0 0 1000 1000"'
            f' preserveAspectRatio="none" overflow="visible">{drawn}</svg>'
        )

    def _runs(self, line: Line) -> list[list[str]]:
        """Unbroken stretches; a gap is never joined."""
        runs: list[list[str]] = [[]]
        for at, value in zip(self.moments, line.values, strict=True):
            if value is None:
                runs.append([])
            else:
                x, y = self._scale.across(at) * 1000, self._scale.down(value) * 1000
                runs[-1].append(f"{x:.0f},{y:.0f}")
        return [run for run in runs if len(run) > 1]

    def _names(self) -> list[str]:
        ends = [(line, _last(line.values)) for line in self.lines]
        places = [
            (self._scale.pixels(value) + 4, line) for line, value in ends if value is not None
        ]
        places.sort(key=lambda place: place[0])
        heights = _apart([y for y, _line in places], lowest=self.height - _BOTTOM)
        return [
            f'<text class="{"b c-a" if line.is_ours else "lab"}" x="{_PLOT + 1.5}%" y="{y:.0f}">'
            f"{escape(line.name)}</text>"
            for y, (_, line) in zip(heights, places, strict=True)
        ]


class _Scale:
    """From values and moments to shares of the plot."""

    def __init__(self, chart: RaceChart) -> None:
        self.chart = chart
        known = [value for line in chart.lines for value in line.values if value is not None]
        highest = max([*known, chart.target or 0.0], default=0.0)
        if chart.least is None:
            self.top = chart.most or (highest * 1.12 if highest > LEAST_TOP else 1.0)
            self.ticks = ticks(self.top, most=3)
        else:
            self.top = 10.0 ** math.ceil(math.log10(max(highest, 10 * chart.least) * 1.01))
            steps = round(math.log10(self.top / chart.least))
            self.ticks = [chart.least * 10.0**step for step in range(1, steps)]
        self.end = max(chart.moments[-1] if chart.moments else 0.0, chart.span)

    def across(self, at: float) -> float:
        return 1.0 - (self.end - at) / self.chart.span

    def down(self, value: float) -> float:
        least = self.chart.least
        if least is None:
            share = value / self.top
        else:
            share = math.log(max(value, least) / least) / math.log(self.top / least)
        return 1.0 - min(1.0, share)

    def pixels(self, value: float) -> float:
        return _TOP + (self.chart.height - _TOP - _BOTTOM) * self.down(value)

    def axes(self) -> list[str]:
        base = self.chart.height - _BOTTOM
        parts = [f'<line class="axis" x1="0" x2="{_PLOT}%" y1="{base}" y2="{base}"/>']
        for value in self.ticks:
            y = self.pixels(value)
            parts.append(f'<line class="grid" x1="0" x2="{_PLOT}%" y1="{y:.0f}" y2="{y:.0f}"/>')
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
            at = self.end - self.chart.span * (1 - share)
            parts.append(
                f'<text x="{_PLOT * share:g}%" y="{base + 17}" text-anchor="{anchor}">'
                f"{escape(self.chart.when(at))}</text>"
            )
        return parts

    def labels(self) -> list[str]:
        """Of the grid; over the curves, which would strike them through."""
        return [
            f'<text class="halo" x="0" y="{self.pixels(value) - 4:.0f}">'
            f"{escape(self.chart.label(value))}</text>"
            for value in self.ticks
        ]

    def goal(self) -> list[str]:
        target = self.chart.target
        if target is None:
            return []
        y = self.pixels(target)
        return [
            f'<line x1="0" x2="{_PLOT}%" y1="{y:.0f}" y2="{y:.0f}" class="c-u"'
            ' stroke="currentColor" stroke-dasharray="4 3"/>',
            f'<text class="halo" x="{_PLOT - 1}%" y="{y - 5:.0f}" text-anchor="end">'
            f"{escape(self.chart.target_label)}</text>",
        ]


@dataclass(frozen=True, slots=True)
class Bar:
    """Requests of one engine."""

    running: int
    waiting: int


def lane(
    key: str, groups: Sequence[tuple[str, Sequence[Bar]]], *, top: int, title: str, told: str
) -> SafeString:
    """Bars by class on a scale of 0 to `top`; `told` says the finding."""
    places = sum(len(bars) for _name, bars in groups) + _GROUP_GAP * (len(groups) - 1)
    width, base = 100 / max(places, 1.0), _LANE_HEIGHT - _BOTTOM
    running: list[str] = []
    others: list[str] = []
    left = 0.0
    for name, bars in groups:
        others.append(f'<text x="{left * width:.2f}%" y="{base + 18}">{escape(name)}</text>')
        for bar in bars:
            if bar.running:
                low = 1000 * left / places
                wide, high = 1000 * _BAR_SHARE / places, 1000 * bar.running / max(top, 1)
                running.append(f"M{low:.0f} 1000v-{high:.0f}h{wide:.0f}V1000z")
            if bar.waiting:
                others.append(_waiting(bar, left * width, width * _BAR_SHARE, top=top, base=base))
            left += 1
        left += _GROUP_GAP
    return mark_safe(  # noqa: S308 - every text in it is escaped
        f'<svg class="chart" width="100%" height="{_LANE_HEIGHT}" role="img"'
        f' aria-labelledby="{key}-t {key}-d"><title id="{key}-t">{escape(title)}</title>'
        f'<desc id="{key}-d">{escape(told)}</desc>'
        f'<line class="axis" x1="0" x2="100%" y1="{base}" y2="{base}"/>'
        f'<svg y="{base - _LANE_DEPTH}" width="100%" height="{_LANE_DEPTH}"'
        ' viewBox="0 0 1000 1000" preserveAspectRatio="none"><path class="c-m"'
        f' fill="currentColor" opacity=".5" d="{"".join(running)}"/></svg>{"".join(others)}</svg>'
    )


def _waiting(bar: Bar, left: float, width: float, *, top: int, base: int) -> str:
    """On top of what runs: dots with a line around them."""
    scale = _LANE_DEPTH / max(top, 1)
    low = base - bar.running * scale
    high = max(1.5, min(bar.waiting * scale, low - (base - _LANE_DEPTH)))
    return (
        f'<rect class="c-t" fill="url(#f-t)" stroke="currentColor" x="{left:.1f}%"'
        f' width="{width:.1f}%" y="{low - high:.1f}" height="{high:.1f}"/>'
    )


def _apart(heights: Sequence[float], *, lowest: float) -> list[float]:
    """Sorted heights, none nearer to the next than a line of text, the last one inside."""
    moved: list[float] = []
    room = lowest - _LEAST_DISTANCE * (len(heights) - 1)
    for height in heights:
        least = moved[-1] + _LEAST_DISTANCE if moved else 0.0
        moved.append(max(least, min(height, room + _LEAST_DISTANCE * len(moved))))
    return moved


def _look(line: Line) -> str:
    return "c-a" if line.is_ours else "c-k thin dash"


def _last(values: Sequence[Value]) -> Value:
    return values[-1] if values else None
