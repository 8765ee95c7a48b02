"""Amounts of resources: `500m`, `64Gi`, `8`."""

import re
from decimal import Decimal

_QUANTITY = re.compile(
    r"^(?P<number>[+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?P<suffix>[a-zA-Z]*|e[+-]?\d+)$"
)
_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}


def amount(value: object) -> Decimal | None:
    """The number a quantity stands for; None when it is no quantity."""
    found = _QUANTITY.match(str(value))
    if not found:
        return None
    suffix = found["suffix"]
    if suffix[:1] in "eE" and suffix[1:].lstrip("+-").isdigit():
        return Decimal(found["number"]) * Decimal(10) ** int(suffix[1:])
    return Decimal(found["number"]) * _SUFFIXES[suffix] if suffix in _SUFFIXES else None


def is_extended(name: str) -> bool:
    """Whether a resource is a device plugin's: whole numbers, request equal to limit."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")
