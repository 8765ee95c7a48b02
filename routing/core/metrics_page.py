"""Reads single metrics from a Prometheus text page without parsing the rest of it.

A page of an engine has hundreds of lines of which a router needs ten, several times a second.
"""

import math
import re
from collections.abc import Iterator

LABEL = re.compile(rb'(\w+)="([^"]*)"')

MAX_SAMPLES = 4096
"""A metric with more samples than any engine has ranks is not read: a page may be hostile."""

Series = list[tuple[bytes, float]]


def series(page: bytes, name: bytes) -> Series:
    """Labels (raw, between name and value) and value of each sample of a metric, in page order.

    Empty when one of them is no finite number, or when there are too many: a part of a sum says
    nothing about the sum.
    """
    found: Series = []
    for ending in (b"{", b" "):
        for line in _lines(page, name + ending):
            head, words = _split(line, is_labelled=ending == b"{")
            value = _finite(words)
            if value is None or len(found) >= MAX_SAMPLES:
                return []
            found.append((head, value))
    return found


def total(page: bytes, name: bytes) -> float | None:
    """Sum of a metric's samples, `None` when there is none."""
    found = series(page, name)
    return sum(value for _, value in found) if found else None


def latest(page: bytes, name: bytes) -> float | None:
    """The greatest sample of a metric, `None` when there is none."""
    return max((value for _, value in series(page, name)), default=None)


def labels_of(head: bytes) -> dict[bytes, bytes]:
    """Labels by name."""
    return dict(LABEL.findall(head))


def whole(value: float | None) -> int | None:
    """Rounded; unknown stays unknown."""
    return None if value is None else round(value)


def _lines(page: bytes, beginning: bytes) -> Iterator[bytes]:
    """Lines of a page that begin so; the first line of a page is a comment and not looked at."""
    needle = b"\n" + beginning
    start = page.find(needle)
    while start >= 0:
        end = page.find(b"\n", start + 1)
        end = end if end >= 0 else len(page)
        yield page[start + 1 : end]
        start = page.find(needle, end)


def _split(line: bytes, *, is_labelled: bool) -> tuple[bytes, list[bytes]]:
    """A label's value may hold a brace and a space, but values and time stamps hold no brace."""
    head, _, text = line.rpartition(b"} ") if is_labelled else line.partition(b" ")
    return head, text.split(maxsplit=1)


def _finite(words: list[bytes]) -> float | None:
    """The first word as a number; a time stamp may follow it."""
    try:
        value = float(words[0]) if words else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
