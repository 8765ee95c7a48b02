"""Who does what in one pool: engines by group and role. Pure values."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec

from routing.planner.problem import Group, Roles


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Engines of one group in one pool; `width` accelerators work together in each."""

    group: str
    width: int
    prefill: int = 0
    decode: int = 0
    both: int = 0

    @property
    def engines(self) -> int:
        """In any role."""
        return self.prefill + self.decode + self.both

    @property
    def accelerators(self) -> int:
        """That these engines use."""
        return self.engines * self.width


Placement = tuple[Share, ...]


def is_split(placement: Placement) -> bool:
    """True if some engine only prefills or only decodes."""
    return any(share.prefill or share.decode for share in placement)


def can_answer(placement: Placement) -> bool:
    """True if a request can be served: a `both`, or a prefill with a decode."""
    return any(share.both for share in placement) or (
        any(share.prefill for share in placement) and any(share.decode for share in placement)
    )


def roles_by_group(placement: Placement) -> dict[str, Roles]:
    """Accelerators by role of each group."""
    return {
        share.group: Roles(
            prefill=share.prefill * share.width,
            decode=share.decode * share.width,
            both=share.both * share.width,
        )
        for share in placement
    }


def accelerators_in(placement: Placement) -> int:
    """That the pool uses."""
    return sum(share.accelerators for share in placement)


def cost_per_hour(placement: Placement, groups: Mapping[str, Group]) -> Decimal | None:
    """Of all accelerators in the pool; `None` as soon as one has no price."""
    total = Decimal(0)
    for share in placement:
        price = groups[share.group].price_per_hour
        if price is None:
            return None
        total += Decimal(price) * share.accelerators
    return total


def watts_at_most(placement: Placement, groups: Mapping[str, Group]) -> float | None:
    """Sum of the power limits; `None` as soon as one is unknown."""
    return _sum(
        None if (watts := groups[share.group].watts) is None else watts * share.accelerators
        for share in placement
    )


def moves_between(before: Placement, after: Placement) -> int:
    """Accelerators whose role or pool differs."""
    then, now = roles_by_group(before), roles_by_group(after)
    moved = 0
    for group in then.keys() | now.keys():
        old, new = then.get(group, Roles()), now.get(group, Roles())
        moved += sum(max(0, getattr(new, role) - getattr(old, role)) for role in ROLES)
        moved += max(0, old.total - new.total)
    return moved


ROLES = ("prefill", "decode", "both")


def _sum(values: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total
