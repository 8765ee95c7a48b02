"""Where each second of an accelerator goes: exactly one class, the first that matches.

`unavailable` (health failed, maintenance) before `transition` (starting after a switch) before
`assigned(pool, role)` before `idle`. Periods are half open and cut to whole seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

UNAVAILABLE, TRANSITION, ASSIGNED, IDLE = "unavailable", "transition", "assigned", "idle"
_ORDER = (UNAVAILABLE, TRANSITION, ASSIGNED)


class CostKey(NamedTuple):
    """A class, with pool and role where it has them."""

    cost_class: str
    pool: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A class holds from `start` until `end`; None is open."""

    key: CostKey
    start: datetime
    end: datetime | None


def seconds_by_class(
    spans: Sequence[Span], *, start: datetime, end: datetime
) -> dict[CostKey, int]:
    """Whole seconds of [start, end) by class; they sum to the seconds of the period."""
    length = int((end - start).total_seconds())
    cuts = _cuts(spans, start=start, length=length)
    found: dict[CostKey, int] = {}
    for first, last in pairwise(cuts):
        key = _key_at(spans, start=start, second=first)
        found[key] = found.get(key, 0) + last - first
    return found


def add_up(parts: Iterable[Mapping[CostKey, int]]) -> dict[CostKey, int]:
    """Accelerator-seconds of several accelerators."""
    total: dict[CostKey, int] = {}
    for part in parts:
        for key, seconds in part.items():
            total[key] = total.get(key, 0) + seconds
    return dict(sorted(total.items()))


def _cuts(spans: Sequence[Span], *, start: datetime, length: int) -> list[int]:
    moments = [0, length]
    for span in spans:
        moments += [_second(moment, start) for moment in (span.start, span.end) if moment]
    return sorted({min(max(moment, 0), length) for moment in moments})


def _second(moment: datetime, start: datetime) -> int:
    return int((moment - start).total_seconds() // 1)


def _key_at(spans: Sequence[Span], *, start: datetime, second: int) -> CostKey:
    holding = [
        span.key
        for span in spans
        if _second(span.start, start) <= second
        and (span.end is None or second < _second(span.end, start))
    ]
    for cost_class in _ORDER:
        matches = [key for key in holding if key.cost_class == cost_class]
        if matches:
            return min(matches)
    return CostKey(IDLE)
