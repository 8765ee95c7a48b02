"""Which limits hold for a tenant and a key, where each comes from, and which is the tightest.

There is no order in which one level replaces another: a request needs room at every level, so the
effective limit is the smallest of those stated. Levels are listed from the widest to the narrowest:
pool, tenant, key. What cannot be compared by size (places, operators, models) is what all levels
allow.
"""

from typing import Any

import msgspec

from routing.core.document import KeySpec, PoolDocument, TenantSpec
from routing.producers.tenants import LIMIT_NAMES


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """What one level says."""

    level: str
    """`pool`, `tenant` or `key`."""
    id: str
    value: Any


class EffectiveLimit(msgspec.Struct, frozen=True, kw_only=True):
    """One limit; `value` and `decided_by` are `None` when no level states it."""

    name: str
    value: Any
    decided_by: str | None
    stated: tuple[Stated, ...]


def effective_limits(
    document: PoolDocument, tenant: str, key_id: str | None = None
) -> list[EffectiveLimit]:
    """All limits of a tenant, and of one of its keys, at one router process.

    A name that the document does not have states nothing. Raises LookupError for a key of another
    tenant.
    """
    spec = next((each for each in document.tenants if each.tenant == tenant), None)
    key = next((each for each in document.keys if each.id == key_id), None)
    if key is not None and key.tenant != tenant:
        raise LookupError(f"The key '{key_id}' is one of tenant '{key.tenant}', not '{tenant}'.")
    found = [_smallest(name, _levels(name, spec, key)) for name in LIMIT_NAMES]
    pool = Stated(level="pool", id=document.pool, value=document.limits.concurrent_requests)
    found.append(_smallest("concurrent_requests_of_all", [pool]))
    body = Stated(level="pool", id=document.pool, value=document.limits.body_bytes)
    found.append(_smallest("body_bytes", [body]))
    lists = ("jurisdictions", "operators", "models")
    found += [_common(name, _levels(name, spec, key)) for name in lists]
    return [*found, _suspension(spec)]


def _levels(name: str, tenant: TenantSpec | None, key: KeySpec | None) -> list[Stated]:
    levels = [("tenant", tenant.tenant, tenant)] if tenant else []
    named: list[tuple[str, str, TenantSpec | KeySpec]] = [*levels]
    if key is not None:
        named.append(("key", key.id, key))
    values = [(level, who, getattr(spec, name, None)) for level, who, spec in named]
    return [
        Stated(level=level, id=who, value=value)
        for level, who, value in values
        if value is not None
    ]


def _smallest(name: str, stated: list[Stated]) -> EffectiveLimit:
    # Of equal ones the narrower level is named: it is the one its owner can change.
    tightest = min(reversed(stated), key=lambda each: each.value, default=None)
    return EffectiveLimit(
        name=name,
        value=None if tightest is None else tightest.value,
        decided_by=None if tightest is None else tightest.level,
        stated=tuple(stated),
    )


def _common(name: str, stated: list[Stated]) -> EffectiveLimit:
    allowed: list[str] | None = None
    for each in stated:
        values = list(each.value)
        allowed = values if allowed is None else [one for one in allowed if one in values]
    return EffectiveLimit(
        name=name,
        value=allowed,
        decided_by=stated[-1].level if len(stated) == 1 else "all" if stated else None,
        stated=tuple(stated),
    )


def _suspension(tenant: TenantSpec | None) -> EffectiveLimit:
    is_suspended = tenant is not None and tenant.is_suspended
    stated = (Stated(level="tenant", id=tenant.tenant, value=True),) if tenant else ()
    return EffectiveLimit(
        name="is_suspended",
        value=is_suspended,
        decided_by="tenant" if is_suspended else None,
        stated=stated if is_suspended else (),
    )
