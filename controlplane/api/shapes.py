"""`fields=a,b.c`, `omit=d` and `brief=true`: less of each object."""

from collections.abc import Mapping
from typing import Any

from controlplane.common.errors import InvalidParameterError

BRIEF = ("id", "slug", "display", "links")


def check(query: Mapping[str, str]) -> None:
    """Raise InvalidParameterError for a value that `shaped` could not follow."""
    _flag(query.get("brief", "false"))


def shaped(data: Any, query: Mapping[str, str]) -> Any:
    """The object, or each item of the list, with only what was asked for."""
    wanted = _names(query.get("fields"))
    if _flag(query.get("brief", "false")):
        wanted = [[name] for name in BRIEF]
    unwanted = _names(query.get("omit"))
    if not wanted and not unwanted:
        return data
    if isinstance(data, dict) and "items" in data and "as_of" in data:
        return data | {"items": [_shape(item, wanted, unwanted) for item in data["items"]]}
    return _shape(data, wanted, unwanted)


def _shape(item: Any, wanted: list[list[str]], unwanted: list[list[str]]) -> Any:
    if not isinstance(item, dict):
        return item
    shape = _only(item, wanted) if wanted else dict(item)
    for path in unwanted:
        shape = _without(shape, path)
    return shape


def _only(item: dict[str, Any], paths: list[list[str]]) -> dict[str, Any]:
    shape: dict[str, Any] = {}
    for first, *rest in paths:
        if first not in item:
            continue
        value = item[first]
        if rest and isinstance(value, dict):
            shape[first] = shape.get(first, {}) | _only(value, [rest])
        else:
            shape[first] = value
    return shape


def _without(item: dict[str, Any], path: list[str]) -> dict[str, Any]:
    first, *rest = path
    if rest and isinstance(item.get(first), dict):
        return item | {first: _without(item[first], rest)}
    return {name: value for name, value in item.items() if rest or name != first}


def _names(text: str | None) -> list[list[str]]:
    return [name.split(".") for name in (text or "").split(",") if name]


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise InvalidParameterError(parameter="brief", value=text, allowed="true, false")
    return text == "true"
