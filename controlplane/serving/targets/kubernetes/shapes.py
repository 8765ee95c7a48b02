"""Reading of objects that may have any shape: what is not there, or of another type, is not there.

An API server is asked for objects of a kind, and an answer need not be one: proxies, old versions
and faults send others. Nothing here raises.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

MOST_CHARACTERS = 500


def dig(found: Any, *path: str) -> Any:
    """What is under the keys; None when there is no such place."""
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def text(found: Any, *path: str) -> str:
    """A text, at most MOST_CHARACTERS of it; "" when there is none."""
    value = dig(found, *path)
    return value[:MOST_CHARACTERS] if isinstance(value, str) else ""


def whole(found: Any, *path: str) -> int | None:
    """A whole number; None when there is none."""
    value = dig(found, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_true(found: Any, *path: str) -> bool:
    """Whether it says true, and nothing else that counts as true."""
    return dig(found, *path) is True


def rows(found: Any, *path: str) -> list[Mapping[str, Any]]:
    """The objects of a list, in their order; what is no object is left out."""
    value = dig(found, *path)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def condition(found: Any, kind: str) -> Mapping[str, Any] | None:
    """The condition of that type in an object's status, or None."""
    named = (row for row in rows(found, "status", "conditions") if row.get("type") == kind)
    return next(named, None)


def moment(found: Any, *path: str) -> float | None:
    """A time as Unix seconds; None when there is none, or none that can be read."""
    try:
        read = datetime.fromisoformat(text(found, *path))
    except ValueError:
        return None
    return read.timestamp() if read.tzinfo is not None else None
