"""Objectives and rewrites as lines that people write, and back; no query, no I/O.

An objective is a name and its priority: `interactive 10`. A rewrite is names, an arrow and targets
with their weights: `chat, assistant -> granite 90, granite-legal 10`; `*` stands for every name.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from controlplane.common.errors import type_text

ARROW, EVERY = "->", "*"
MOST_LINES = 500


class RuleLineError(ValueError):
    """A line that cannot be read; the message says which, why and how it is written."""

    def __init__(self, number: int, message: "type_text") -> None:
        super().__init__(_("Line %(number)d: %(message)s") % {"number": number, "message": message})


def objectives_text(objectives: Mapping[str, int]) -> str:
    """One line each, the highest priority first."""
    ordered = sorted(objectives.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"{name} {priority}" for name, priority in ordered)


def objectives_of(text: str) -> dict[str, int]:
    """Priorities by name. Raises RuleLineError."""
    found: dict[str, int] = {}
    for number, line in _lines(text):
        parts = line.split()
        if len(parts) != 2 or not _is_whole(parts[1]):
            raise RuleLineError(number, _("write a name and a whole number: interactive 10"))
        if parts[0] in found:
            raise RuleLineError(number, _("the name %s stands twice") % parts[0])
        found[parts[0]] = int(parts[1])
    return found


def rewrites_text(rewrites: Sequence[Mapping[str, Any]]) -> str:
    """One line each, in their order."""
    return "\n".join(_rule_text(rule) for rule in rewrites)


def rewrites_of(text: str) -> list[dict[str, Any]]:
    """Rules as in the pool document. Raises RuleLineError."""
    return [_rule(number, line) for number, line in _lines(text)]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, numbered as a person counts them."""
    for number, line in enumerate(text.splitlines(), 1):
        if number > MOST_LINES:
            raise RuleLineError(number, _("at most %d lines are read") % MOST_LINES)
        if line.strip():
            yield number, line.strip()


def _rule_text(rule: Mapping[str, Any]) -> str:
    targets = (
        f"{target['model']} {target['weight']}" if target.get("weight") else target["model"]
        for target in rule["targets"]
    )
    return f"{', '.join(rule.get('models') or [EVERY])} {ARROW} {', '.join(targets)}"


def _rule(number: int, line: str) -> dict[str, Any]:
    left, arrow, right = line.partition(ARROW)
    names, targets = _parts(left), _parts(right)
    if not arrow or not names or not targets or any(len(name.split()) > 1 for name in names):
        raise RuleLineError(
            number, _("write names, an arrow and models: chat, assistant -> granite 90, other 10")
        )
    if EVERY in names and len(names) > 1:
        raise RuleLineError(number, _("* stands alone: it is every name"))
    return {
        "models": [] if names == [EVERY] else names,
        "targets": [_target(number, target) for target in targets],
    }


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _target(number: int, text: str) -> dict[str, Any]:
    parts = text.split()
    if len(parts) == 1:
        return {"model": parts[0]}
    if len(parts) == 2 and _is_whole(parts[1]):
        return {"model": parts[0], "weight": int(parts[1])}
    raise RuleLineError(number, _("write a model and perhaps its weight: granite 90"))


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 12
