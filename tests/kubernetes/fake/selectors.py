"""Label and field selectors, in the API server's text form."""

import re
from collections.abc import Callable
from typing import Any

from tests.kubernetes.fake.errors import ApiError

Match = Callable[[dict[str, Any]], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=]+)\s*(?P<op>!=|==|=)\s*(?P<value>[^\s]*)$")
_SPLIT = re.compile(r",(?![^(]*\))")


def by_labels(text: str) -> Match:
    """Whether an object's labels fit. Raises ApiError 400 for text that is no selector."""
    tests = [_label_test(part.strip()) for part in _SPLIT.split(text) if part.strip()]

    def match(item: dict[str, Any]) -> bool:
        labels = item.get("metadata", {}).get("labels") or {}
        return all(test(labels) for test in tests)

    return match


def _label_test(part: str) -> Match:
    if found := _SET.match(part):
        values = {value.strip() for value in found["values"].split(",")}
        return _among(found["key"], values, wanted=found["op"] == "in")
    if found := _EQUAL.match(part):
        return _among(found["key"], {found["value"]}, wanted=found["op"] != "!=")
    if " " in part:
        raise ApiError(400, f"unable to parse requirement: {part!r}")
    key, wanted = part.removeprefix("!"), not part.startswith("!")
    return lambda labels: (key in labels) is wanted


def _among(key: str, values: set[str], *, wanted: bool) -> Match:
    return lambda labels: (labels.get(key) in values) is wanted


def by_fields(text: str) -> Match:
    """Whether an object's fields fit: `metadata.name=x,spec.nodeName!=y`."""
    wanted = []
    for part in filter(None, text.split(",")):
        found = _EQUAL.match(part.strip())
        if not found:
            raise ApiError(400, f"invalid field selector: {part!r}")
        wanted.append((found["key"].split("."), found["op"] != "!=", found["value"]))

    def match(item: dict[str, Any]) -> bool:
        return all((_field(item, path) == value) is equal for path, equal, value in wanted)

    return match


def by_selector(selector: dict[str, Any] | None) -> Match:
    """A LabelSelector object; None selects nothing, an empty one everything."""
    if selector is None:
        return lambda item: False
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for rule in selector.get("matchExpressions") or []:
        key, operator, values = rule["key"], rule["operator"], ",".join(rule.get("values") or [])
        words = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append(words[operator])
    return by_labels(",".join(parts))


def _field(item: Any, path: list[str]) -> str:
    for key in path:
        item = item.get(key) if isinstance(item, dict) else None
    return "" if item is None else str(item)
