"""Arithmetic of plans on plain values: items, waves, floor, fingerprint. No query here."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec


class PlanItem(msgspec.Struct, frozen=True, kw_only=True):
    """One accelerator and its role before and after; an empty role is none."""

    accelerator: str
    node: str
    hostname: str
    slot: int
    vendor: str
    accelerator_model: str
    target: str
    workload: str
    from_role: str
    to_role: str

    def reversed(self) -> "PlanItem":
        """The same change backwards."""
        return msgspec.structs.replace(self, from_role=self.to_role, to_role=self.from_role)

    def as_json(self) -> dict[str, Any]:
        """Plain values for a JSON column."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def items_of(rows: Iterable[Mapping[str, Any]], *, backwards: bool = False) -> list[PlanItem]:
    """Items from a JSON column, in their order; backwards with roles swapped."""
    items = [msgspec.convert(row, PlanItem) for row in rows]
    return [item.reversed() for item in items] if backwards else items


def waves_of(items: Sequence[PlanItem], *, per_wave: int) -> list[list[PlanItem]]:
    """Items cut into waves of at most `per_wave`, ordered by host and slot."""
    ordered = sorted(items, key=lambda item: (item.hostname, item.slot, item.accelerator))
    return [ordered[start : start + per_wave] for start in range(0, len(ordered), per_wave)]


def floor_count(serving: int, *, floor_share: float) -> int:
    """Accelerators that must stay in service out of those that serve, rounded up.

    With none in service there is nothing to protect, so 0.
    """
    return math.ceil(serving * floor_share - 1e-9)


def lowest_count(serving: int, waves: Sequence[Sequence[PlanItem]]) -> int:
    """Fewest accelerators in service at any time, when each wave ends before the next begins."""
    lowest, now = serving, serving
    for wave in waves:
        leaving = sum(1 for item in wave if item.from_role)
        lowest = min(lowest, now - leaving)
        now += sum(1 for item in wave if item.to_role) - leaving
    return lowest


def roles_after(before: Mapping[str, str], items: Iterable[PlanItem]) -> dict[str, str]:
    """Role by accelerator after the change; released accelerators are left out."""
    after = dict(before)
    for item in items:
        if item.to_role:
            after[item.accelerator] = item.to_role
        else:
            after.pop(item.accelerator, None)
    return after


def role_counts(roles: Mapping[str, str]) -> dict[str, int]:
    """How many accelerators have each role; every role is named, also with 0."""
    counts = Counter(roles.values())
    return {role: counts[role] for role in ("prefill", "decode", "both")}


def fingerprint(state: Mapping[str, Any]) -> str:
    """SHA-256 of what a plan was made for, equal for equal states."""
    text = json.dumps(state, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def spec_hash(
    argv: Sequence[str], env: Mapping[str, str], manifests: Sequence[Mapping[str, Any]] = ()
) -> str:
    """SHA-256 of what an engine is started with; another hash needs another process."""
    parts: list[Any] = [list(argv), dict(env), *([list(manifests)] if manifests else [])]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
