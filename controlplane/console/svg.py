"""Pieces of SVG: bars of patterns, and the frame that charts share. Text in, markup out.

Widths are attributes in percent, fills are patterns of the page's sprite, colours are classes,
so that one drawing serves both themes and needs no inline style.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

_OUTLINED = {"i": "", "k": ' stroke-dasharray="4 3"'}
"""Patterns that are mostly outline, with what their line looks like."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a bar: letter of its pattern, its size in the unit of the whole, what it says."""

    pattern: str
    size: float
    label: str = ""


def bar(
    segments: Sequence[Segment], *, total: float, label: str, height: int = 14, track: bool = False
) -> SafeString:
    """Draw segments side by side on a bar of `total`; the label says the same in words.

    With `track` the rest of the bar shows its bed. An empty label hides the bar from screen
    readers: the number then stands beside it.
    """
    role = (
        format_html('role="img" aria-label="{}"', label)
        if label
        else mark_safe('aria-hidden="true"')
    )
    bed = format_html('<rect class="track" width="100%" height="{}"/>', height) if track else ""
    return format_html(
        '<svg class="bar" width="100%" height="{}" {}>{}{}</svg>',
        height, role, bed, _joined(_parts(segments, total, height)),
    )  # fmt: skip


def _joined(parts: Iterable[str]) -> SafeString:
    return mark_safe("".join(parts))  # noqa: S308 - numbers and letters of patterns only


def _parts(segments: Iterable[Segment], total: float, height: int) -> Iterable[str]:
    left = 0.0
    for segment in segments:
        if segment.size <= 0 or total <= 0:
            continue
        width = min(100.0 - left, 100 * segment.size / total)
        yield _part(segment.pattern, left, width, height)
        left += width
        if left < 99.9:
            yield (
                f'<rect class="gap" x="{left:.3f}%" y="0" width="1.5" height="{height}"'
                ' transform="translate(-.75)"/>'
            )


def _part(pattern: str, left: float, width: float, height: int) -> str:
    filled = (
        f'<rect x="{left:.3f}%" width="{width:.3f}%" height="{height}" fill="url(#f-{pattern})"/>'
    )
    if pattern not in _OUTLINED:
        return filled
    line = (
        f'<rect class="c-{pattern} o" x="{left:.3f}%" y=".5" width="{width:.3f}%"'
        f' height="{height - 1}"{_OUTLINED[pattern]}/>'
    )
    return line if pattern == "i" else filled + line


def meter(share: float | None) -> SafeString:
    """Small bar beside a percentage; its bed alone when the share is unknown."""
    segments = [] if share is None else [Segment("m", max(0.0, min(1.0, share)))]
    return bar(segments, total=1.0, label="", height=6, track=True)


def icon(name: str) -> SafeString:
    """Icon of the sprite, hidden from screen readers: a word stands beside it."""
    return format_html('<svg class="i" aria-hidden="true"><use href="#i-{}"/></svg>', name)


def mark(pattern: str) -> SafeString:
    """Square mark of a role or cost class."""
    return format_html(
        '<svg class="rm" viewBox="0 0 14 14" aria-hidden="true"><use href="#r-{}"/></svg>', pattern
    )


def squares(patterns: Sequence[str], *, label: str) -> SafeString:
    """One square of 18 px per accelerator, as on the role board."""
    cells = format_html_join(
        "", '<rect x="{}" y="1" width="18" height="18" fill="url(#f-{})"/>{}',
        ((22 * place, pattern, _outline(pattern, 22 * place))
         for place, pattern in enumerate(patterns)),
    )  # fmt: skip
    return format_html(
        '<svg width="{}" height="21" role="img" aria-label="{}">{}</svg>',
        max(22 * len(patterns) - 4, 18), label, cells,
    )  # fmt: skip


def _outline(pattern: str, left: int) -> SafeString:
    if pattern == "p":
        return mark_safe("")
    return format_html(
        '<rect class="c-{}" x="{}" y="1.5" width="17" height="17" fill="none"'
        ' stroke="currentColor"/>',
        pattern, left + 0.5,
    )  # fmt: skip
