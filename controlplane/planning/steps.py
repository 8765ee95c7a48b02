"""From the roles of today and an advised placement to the accelerators that change. Pure.

A change plan gives one role to its accelerators, so a split is reached in steps: first those that
prefill (the others still answer alone), then those that decode, then both, then releases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ORDER = ("prefill", "decode", "both", "")
"""In which roles are given; empty releases."""


@dataclass(frozen=True, slots=True)
class Step:
    """Accelerators that get one role; an empty role releases them."""

    role: str
    accelerators: tuple[str, ...]


class ShortageError(Exception):
    """A group has fewer accelerators than the placement needs."""

    def __init__(self, group: str, *, needed: int, there: int) -> None:
        super().__init__(group)
        self.group, self.needed, self.there = group, needed, there


def steps_to(
    wanted: Mapping[str, Mapping[str, int]],
    members: Mapping[str, Sequence[str]],
    roles: Mapping[str, str],
    *,
    free: frozenset[str],
) -> list[Step]:
    """Steps from `roles` (by accelerator of this pool) to the counts that are wanted by group.

    `free` accelerators have no role in any pool. Those that have the right role keep it. Raises
    ShortageError.
    """
    target: dict[str, str] = {}
    for group, counts in wanted.items():
        usable = [one for one in members.get(group, ()) if one in roles or one in free]
        needed = sum(counts.values())
        if needed > len(usable):
            raise ShortageError(group, needed=needed, there=len(usable))
        target |= _given(counts, usable, roles)
    known = {one for group in members.values() for one in group}
    leaving = [one for one in roles if one in known and one not in target]
    changes = {one: role for one, role in target.items() if roles.get(one, "") != role}
    changes |= dict.fromkeys(leaving, "")
    return [
        Step(role, tuple(one for one, given in changes.items() if given == role))
        for role in ORDER
        if role in changes.values()
    ]


def _given(
    counts: Mapping[str, int], usable: Sequence[str], roles: Mapping[str, str]
) -> dict[str, str]:
    """A role for as many as are wanted; whoever has it already comes first."""
    left = dict(counts)
    given: dict[str, str] = {}
    for one in usable:
        role = roles.get(one, "")
        if left.get(role, 0) > 0:
            given[one] = role
            left[role] -= 1
    # Idle ones come last: what the pool does not need stays idle.
    rest = sorted((one for one in usable if one not in given), key=lambda one: one not in roles)
    for role in ORDER[:-1]:
        for _ in range(left.get(role, 0)):
            given[rest.pop(0)] = role
    return given
