"""Line charts over a rate as SVG text: classes and attributes only, so that a strict policy for
styles lets them through, and no script.

A line is told apart by its dash and by its name at the right end; colour helps, and never stands
alone. What is unknown breaks a line. Published points are hollow, one shape for each label.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 150, 14, 44
MOST_LINES = 6
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "12 4")
SHAPES = (("□", "M-4-4H4V4H-4Z"), ("◇", "M0-6L5 0L0 6L-5 0Z"), ("△", "M0-5L5 4H-5Z"))
"""Of marks: as a letter, and as a path around its middle."""
LABEL_GAP = 14
SMALLEST = 1e-9
"""Less is drawn as zero, which a scale of tens has no place for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points `(x, y)` in order of x; a y of `None` is unknown."""

    name: str
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A single point that somebody published."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What to draw; `drawn` makes the picture."""

    key: str
    """Unique on the page, of letters, digits and hyphens."""
    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    is_log: bool = False
    """Each step up is a factor of ten; for times that differ by orders of magnitude."""
    finding: str = ""
    """In words, for those who do not see it."""


def drawn(chart: Chart) -> str:
    """The picture; empty when nothing is known. At most `MOST_LINES` lines are drawn, the first."""
    frame = _Frame.of(chart)
    if frame is None:
        return ""
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-labelledby="{chart.key}-t {chart.key}-d">',
        f'<title id="{chart.key}-t">{escape(chart.title)}</title>',
        f'<desc id="{chart.key}-d">{escape(chart.finding)}</desc>',
        *frame.axes(chart),
    ]
    for place, line in enumerate(chart.lines[:MOST_LINES]):
        parts += _line(frame, line, place)
    parts += _names(frame, chart.lines[:MOST_LINES])
    labels = labels_of(chart)
    parts += [text for mark in chart.marks for text in _mark(frame, mark, labels)]
    return "".join([*parts, "</svg>"])


def labels_of(chart: Chart) -> list[str]:
    """The labels of its marks; the place of each in the list is that of its shape in `SHAPES`."""
    return list(dict.fromkeys(mark.label for mark in chart.marks))


@dataclass(frozen=True, slots=True)
class _Frame:
    """From values to coordinates."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float
    is_log: bool
    rates: tuple[float, ...]

    @classmethod
    def of(cls, chart: Chart) -> "_Frame | None":
        points = [
            (x, y) for line in chart.lines[:MOST_LINES] for x, y in line.points if y is not None
        ]
        points += [(mark.x, mark.y) for mark in chart.marks]
        if chart.is_log:
            points = [(x, y) for x, y in points if y > SMALLEST]
        if not points:
            return None
        xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
        low, high = (min(ys), max(ys)) if chart.is_log else (0.0, max(ys) * 1.08)
        if chart.is_log:
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high * 1.01))
        elif high <= SMALLEST:
            high = 1.0
        return cls(xs[0], xs[-1], low, high, chart.is_log, tuple(xs))

    def across(self, x: float) -> float:
        span = self.high_x - self.low_x
        share = (x - self.low_x) / span if span else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def down(self, y: float) -> float:
        if self.is_log:
            share = math.log(y / self.low_y) / math.log(self.high_y / self.low_y)
        else:
            share = y / self.high_y
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def axes(self, chart: Chart) -> list[str]:
        base, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = [f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}"/>']
        for value in self._levels():
            y = self.down(value)
            parts += [
                f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>',
                f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>',
            ]
        for rate in self._rates():
            parts.append(
                f'<text x="{self.across(rate):.1f}" y="{base + 16}" text-anchor="middle">'
                f"{rate:g}</text>"
            )
        middle = (LEFT + right) / 2
        parts += [
            f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
            f"{escape(chart.x_title)}</text>",
            f'<text class="unit" x="{LEFT}" y="{TOP - 3}">{escape(chart.y_title)}</text>',
        ]
        return parts

    def _levels(self) -> list[float]:
        if self.is_log:
            first, last = round(math.log10(self.low_y)), round(math.log10(self.high_y))
            return [10.0**power for power in range(first, last + 1)]
        power = 10.0 ** math.floor(math.log10(self.high_y / 2))
        step = next(many * power for many in (5, 2, 1) if many * power <= self.high_y / 2)
        return [step * number for number in range(6) if step * number <= self.high_y]

    def _rates(self) -> list[float]:
        """Those with room for their number."""
        kept: list[float] = []
        for rate in self.rates:
            if not kept or self.across(rate) - self.across(kept[-1]) > 26:
                kept.append(rate)
        return kept


def short(value: float) -> str:
    """A number for an axis."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g} M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def _line(frame: _Frame, line: Line, place: int) -> list[str]:
    dash = DASHES[place]
    look = f'class="line s{place}"' + (f' stroke-dasharray="{dash}"' if dash else "")
    parts, run = [], list[str]()
    for x, y in (*line.points, (0.0, None)):
        if y is None or (frame.is_log and y <= SMALLEST):
            if len(run) > 1:
                parts.append(f'<polyline {look} points="{" ".join(run)}"/>')
            run = []
            continue
        run.append(f"{frame.across(x):.1f},{frame.down(y):.1f}")
        parts.append(
            f'<circle class="dot s{place}" cx="{frame.across(x):.1f}"'
            f' cy="{frame.down(y):.1f}" r="3"/>'
        )
    return parts


def _names(frame: _Frame, lines: Sequence[Line]) -> list[str]:
    """The names at the right ends, moved apart."""
    ends: list[tuple[float, int, str]] = []
    for place, line in enumerate(lines):
        known = [y for _, y in line.points if y is not None and (y > SMALLEST or not frame.is_log)]
        if known:
            ends.append((frame.down(known[-1]), place, line.name))
    heights = _apart([end[0] for end in sorted(ends)])
    return [
        f'<text class="name s{place}" x="{WIDTH - RIGHT + 10}" y="{y + 4:.1f}">'
        f"{escape(name)}</text>"
        for y, (_, place, name) in zip(heights, sorted(ends), strict=True)
    ]


def _apart(heights: Sequence[float]) -> list[float]:
    """The same, from the top, so far apart that letters do not meet, and above the axis."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + LABEL_GAP) if moved else height)
    lift = max(0.0, moved[-1] - (HEIGHT - BOTTOM)) if moved else 0.0
    return [height - lift for height in moved]


def _mark(frame: _Frame, mark: Mark, labels: Sequence[str]) -> list[str]:
    if frame.is_log and mark.y <= SMALLEST:
        return []
    x, y = frame.across(mark.x), frame.down(mark.y)
    _, path = SHAPES[labels.index(mark.label) % len(SHAPES)]
    return [
        f'<path class="mark" transform="translate({x:.1f} {y:.1f})" d="{path}">'
        f"<title>{escape(mark.label)}</title></path>"
    ]
