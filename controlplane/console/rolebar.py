"""The roles of a node in time, drawn as bars: one lane per set of slots."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from controlplane.console import format as fmt
from controlplane.console import words
from controlplane.console.selectors.fleet import Span, ranges

Lane = tuple[list[int], list[Span]]
"""Slots with one history, and that history."""

_LANE = 34
_HEAD = 14
_BAR = 14


@dataclass(frozen=True, slots=True)
class RoleBar:
    """Spans on a time axis."""

    spans: Sequence[Span]
    start: datetime
    end: datetime

    @property
    def drawing(self) -> SafeString:
        """The picture; empty without spans."""
        lanes = lanes_of(self.spans)
        if not lanes:
            return mark_safe("")
        height = _LANE * len(lanes) + 24
        parts = [
            f'<svg class="chart" width="100%" height="{height}" role="img"'
            f' aria-label="{escape(self._told(lanes))}">'
        ]
        for place, (slots, spans) in enumerate(lanes):
            label = escape(_("slots %(slots)s") % {"slots": ranges(slots)})
            parts.append(f'<text class="lab" x="0" y="{_LANE * place + _HEAD - 4}">{label}</text>')
            parts += [self._bar(span, _LANE * place + _HEAD) for span in spans]
        parts += [*self._axis(height), "</svg>"]
        return mark_safe("".join(parts))  # noqa: S308 - every text in it is escaped

    def _across(self, at: datetime) -> float:
        share = (at - self.start) / (self.end - self.start)
        return 100 * min(1.0, max(0.0, share))

    def _bar(self, span: Span, y: int) -> str:
        left, right = self._across(span.start), self._across(span.end or self.end)
        width = max(right - left, 0.3)
        letter = words.role(span.role)[0]
        return (
            f'<rect x="{min(left, 100 - width):.2f}%" width="{width:.2f}%" y="{y}" height="{_BAR}"'
            f' fill="url(#f-{letter})"/>'
        )

    def _axis(self, height: int) -> list[str]:
        parts = []
        for share, anchor in ((0.0, "start"), (0.25, "middle"), (0.5, "middle"), (0.75, "middle")):
            at = self.start + share * (self.end - self.start)
            parts.append(
                f'<text x="{100 * share:g}%" y="{height - 4}" text-anchor="{anchor}">'
                f"{escape(fmt.day(at))}</text>"
            )
        parts.append(f'<text x="100%" y="{height - 4}" text-anchor="end">{escape(_("now"))}</text>')
        return parts

    def _told(self, lanes: Sequence[Lane]) -> str:
        return "; ".join(
            f"{ranges(slots)}: {words.role(span.role)[1]}, {fmt.day(span.start)} \N{EN DASH} "
            f"{fmt.day(span.end) if span.end else _('now')}"
            for slots, spans in lanes
            for span in spans
        )


def lanes_of(spans: Sequence[Span]) -> list[Lane]:
    """Slots that were always the same, with their spans, by slot."""
    of_slot: dict[int, list[Span]] = {}
    for span in spans:
        for slot in span.slots:
            of_slot.setdefault(slot, []).append(span)
    lanes: list[Lane] = []
    for slot in sorted(of_slot):
        known = next((slots for slots, found in lanes if found == of_slot[slot]), None)
        if known is None:
            lanes.append(([slot], of_slot[slot]))
        else:
            known.append(slot)
    return lanes


def role_bar(spans: Sequence[Span], *, now: datetime, days: int = 35) -> RoleBar:
    """Bars of the last days, shorter if the ledger began later."""
    oldest = min((span.start for span in spans), default=now)
    start = max(now - timedelta(days=days), min(oldest, now - timedelta(hours=1)))
    return RoleBar(spans=spans, start=start, end=now)
