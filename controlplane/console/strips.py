"""Bars of the overview: capacity as nested bars, roles by vendor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from controlplane.console import svg, words
from controlplane.console.selectors.overview import Capacity, VendorRow
from inventory.selectors.capacity import Counts

_LETTERS = {"prefill": "p", "decode": "d", "both": "b", "unassigned": "i"}


@dataclass(frozen=True, slots=True)
class StripBars:
    """The two bars of one kind of thing, with their numbers in words."""

    name: str
    delivered: int
    delivered_bar: SafeString
    delivered_words: str
    reserved: int
    reserved_bar: SafeString
    reserved_words: str


def capacity_strips(capacity: Capacity) -> list[StripBars]:
    """Bars of accelerators and of nodes; both bars of a kind have the same scale."""
    return [
        _strip(_("Accelerators"), capacity.accelerators),
        _strip(_("Nodes"), capacity.nodes),
    ]


def _strip(name: str, strip: Counts) -> StripBars:
    counts = {
        "healthy": strip.healthy,
        "degraded": strip.degraded,
        "failed": strip.failed,
        "unknown": strip.unknown,
    }
    told = ", ".join(f"{count} {words.look(code).word}" for code, count in counts.items() if count)
    reserved = _("%(active)d active, %(rest)d not") % {
        "active": strip.active,
        "rest": strip.reserved - strip.active,
    }
    return StripBars(
        name=name,
        delivered=strip.delivered,
        delivered_bar=svg.bar(
            [
                svg.Segment("x", strip.healthy),
                svg.Segment("t", strip.degraded),
                svg.Segment("u", strip.failed),
                svg.Segment("k", strip.unknown),
            ],
            total=strip.delivered,
            label=_("Delivered %(count)d: %(healths)s") % {
                "count": strip.delivered, "healths": told,
            },
        ),
        delivered_words=told,
        reserved=strip.reserved,
        reserved_bar=svg.bar(
            [svg.Segment("x", strip.active), svg.Segment("t", strip.reserved - strip.active)],
            total=strip.delivered,
            label=_("Reserved %(count)d: %(state)s") % {
                "count": strip.reserved, "state": reserved,
            },
            track=True,
        ),
        reserved_words=reserved,
    )  # fmt: skip


def vendor_bars(rows: Sequence[VendorRow]) -> list[tuple[VendorRow, SafeString]]:
    """Rows with the bar of their roles."""
    return [(row, role_bar(row.roles, label=row.model)) for row in rows]


def role_bar(roles: Mapping[str, int], *, label: str, height: int = 10) -> SafeString:
    """Shares of the roles among accelerators; the label names them with their counts."""
    present = [(role, count) for role, count in roles.items() if count]
    told = ", ".join(f"{count} {words.role(role)[1]}" for role, count in present)
    order = sorted(present, key=lambda pair: list(_LETTERS).index(pair[0]))
    return svg.bar(
        [svg.Segment(_LETTERS[role], count) for role, count in order],
        total=sum(count for _role, count in present),
        label=f"{label}: {told}",
        height=height,
    )
