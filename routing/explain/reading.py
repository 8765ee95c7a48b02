"""A decision record as far as it can be read: whatever was handed in, what comes out has the types
of `routing.core.record` and a bounded size.

A part that is missing, of another type, not finite or beyond the bounds is left out, so that an
explanation says less instead of failing. Texts lose what a terminal would take for a command.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

Read = Callable[[Any], Any]

TEXT_CHARACTERS = 500
MOST_CANDIDATES, MOST_NAMES = 256, 256
"""A router writes 64 candidates and 256 filtered endpoints."""
MOST_NUMBER = 1e15


def readable(record: Any) -> dict[str, Any]:
    """The parts of a record that can be read; {} for what is no object."""
    return _object(_RECORD)(record) or {}


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    is_usable = abs(value) <= MOST_NUMBER and math.isfinite(value)
    return value if is_usable else None


def _count(value: Any) -> int | None:
    found = _number(value)
    return None if found is None or found < 0 else int(found)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    cut = value[:TEXT_CHARACTERS]
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in cut)


def _object(fields: Mapping[str, Read]) -> Read:
    def read(value: Any) -> dict[str, Any] | None:
        if not isinstance(value, Mapping):
            return None
        return _kept((name, part(value.get(name))) for name, part in fields.items())

    return read


def _list(part: Read, *, most: int = MOST_NAMES) -> Read:
    def read(value: Any) -> list[Any] | None:
        if not isinstance(value, list | tuple):
            return None
        return [found for one in islice(value, most) if (found := part(one)) is not None]

    return read


def _table(part: Read) -> Read:
    """An object whose names are not fixed."""

    def read(value: Any) -> dict[str, Any] | None:
        if not isinstance(value, Mapping):
            return None
        rows = islice(value.items(), MOST_NAMES)
        return _kept((name, part(one)) for key, one in rows if (name := _text(key)))

    return read


def _kept(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if value is not None}


def _candidate(value: Any) -> dict[str, Any] | None:
    found = _object(_CANDIDATE)(value)
    return found if found and "endpoint" in found else None


def _rejected(value: Any) -> dict[str, Any] | None:
    found = _object({"endpoint": _text, "rule": _text})(value)
    return found if found and len(found) == 2 else None


def _scorer(value: Any) -> dict[str, Any] | None:
    found = _object({"weight": _number, "score": _number})(value)
    return found if found and "weight" in found else None


_CANDIDATE: Mapping[str, Read] = {
    "endpoint": _text,
    "prefill": _text,
    "hit_tokens": _count,
    "signal_age_seconds": _number,
    "terms": _table(_number),
    "other_way": _object({"prefill": _text, "gain_seconds": _number}),
    "scores": _table(_scorer),
}
_RECORD: Mapping[str, Read] = {
    **dict.fromkeys(("policy", "pool", "destination", "prefill", "runner_up"), _text),
    "document_version": _count,
    "margin_seconds": _number,
    "refusal": _object(
        {"status": _count, "code": _text, "message": _text, "retry_after_seconds": _number}
    ),
    "predicted": _table(_number),
    "request": _object({"model": _text, "prompt_tokens": _count, "forced": _list(_text)}),
    "candidates": _list(_candidate, most=MOST_CANDIDATES),
    "candidate_count": _count,
    "rejected": _list(_rejected),
    "removed": _table(_count),
    "fallbacks": _list(_text),
    "degraded": _list(_text),
    "unknown": _list(_text),
    "shadows": _list(
        _object({"policy": _text, "destination": _text, "agrees": _flag, "regret_seconds": _number})
    ),
    "outcome": _object(
        {"outcome": _text, "status": _count, "ttft_seconds": _number, "cached_tokens": _count}
    ),
}
