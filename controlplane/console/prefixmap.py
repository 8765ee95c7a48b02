"""Which endpoint holds which prefix, drawn: a row per prefix group, a column per endpoint."""

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from controlplane.console import format as fmt
from controlplane.decisions.selectors import PrefixMap

_LEFT, _TOP, _LINE, _CELL = 27.0, 22, 24, 16


def drawing(found: PrefixMap) -> SafeString:
    """The map; empty when no group is held anywhere."""
    if not found.groups or not found.endpoints:
        return mark_safe("")
    step = (100.0 - _LEFT) / len(found.endpoints)
    height = _TOP + _LINE * len(found.groups)
    held = sum(len(group.shares) for group in found.groups)
    told = _("%(groups)d prefix groups against %(endpoints)d endpoints; %(held)d are held.") % {
        "groups": len(found.groups), "endpoints": len(found.endpoints), "held": held,
    }  # fmt: skip
    title = _("Which endpoint holds which prefix")
    parts = [
        f'<svg class="chart w28" width="100%" height="{height}" role="img"'
        ' aria-labelledby="pm-t pm-d">',
        f'<title id="pm-t">{escape(title)}</title>',
        f'<desc id="pm-d">{escape(told)}</desc>',
    ]
    for line, group in enumerate(found.groups):
        y = _TOP + _LINE * line - 10
        label = escape(f"{group.tenant[:16]} {group.key[:4]}")
        parts.append(f'<text class="lab" x="0" y="{y + 12}">{label}</text>')
        for column, name in enumerate(found.endpoints):
            parts += _cell(_LEFT + step * column, y, step, group.shares.get(name, 0.0))
            if name == group.latest:
                x = _LEFT + step * (column + 0.4)
                parts.append(f'<circle cx="{x:.2f}%" cy="{y + 8}" r="3" class="pt c-k"/>')
    return mark_safe("".join([*parts, "</svg>"]))  # noqa: S308 - every text in it is escaped


def rows(found: PrefixMap) -> list[tuple[str, str, str, str, str]]:
    """The drawn numbers: group, tenant, endpoint, share held, whether the latest went there."""
    return [
        (group.key, group.tenant, name, fmt.percent(share), "●" if name == group.latest else "")
        for group in found.groups
        for name, share in sorted(group.shares.items())
    ]


def _cell(x: float, y: int, step: float, share: float) -> list[str]:
    width = step * 0.8
    bed = f'<rect class="track" x="{x:.2f}%" y="{y}" width="{width:.2f}%" height="{_CELL}"/>'
    if share <= 0:
        return [bed]
    high = max(1.0, _CELL * min(share, 1.0))
    return [
        bed,
        f'<rect class="c-x" fill="currentColor" opacity=".72" x="{x:.2f}%"'
        f' y="{y + _CELL - high:.1f}" width="{width:.2f}%" height="{high:.1f}"/>',
    ]
