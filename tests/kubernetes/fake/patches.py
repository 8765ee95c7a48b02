"""Merge, JSON and strategic merge patches."""

import copy
from typing import Any

from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.fields import item_key, list_keys

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")


def patched(item: dict[str, Any], patch: Any, content_type: str) -> dict[str, Any]:
    """The object with the patch laid on. Raises ApiError 400, 415 or 422."""
    if content_type == JSON:
        if not isinstance(patch, list):
            raise ApiError(400, "a JSON patch is a list of operations")
        return _json(copy.deepcopy(item), patch)
    if not isinstance(patch, dict):
        raise ApiError(400, "a merge patch is an object")
    if content_type == MERGE:
        return _merge(item, patch)
    if content_type == STRATEGIC:
        return _strategic(item, patch)
    raise ApiError(415, f"the body of the request was in an unknown format: {content_type}")


def _merge(item: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(item) if isinstance(item, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result


def _strategic(item: Any, patch: Any, name: str = "") -> Any:
    if isinstance(patch, dict):
        if patch.get("$patch") == "replace":
            return {key: value for key, value in patch.items() if key != "$patch"}
        result = dict(item) if isinstance(item, dict) else {}
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            elif not key.startswith("$"):
                result[key] = _strategic(result.get(key), value, key)
        return result
    keys = list_keys(name, patch) if isinstance(patch, list) else None
    if keys and isinstance(item, list):
        return _strategic_items(item, patch, keys)
    return patch


def _strategic_items(live: list[Any], patch: list[Any], keys: tuple[str, ...]) -> list[Any]:
    result = {item_key(item, keys): item for item in live}
    for item in patch:
        key = item_key(item, keys)
        if item.get("$patch") == "delete":
            result.pop(key, None)
        else:
            result[key] = _strategic(result.get(key), item)
    return list(result.values())


def _json(item: dict[str, Any], operations: list[Any]) -> dict[str, Any]:
    for step in operations:
        try:
            _step(item, step)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            message = f"the server rejected our request due to an error in our request: {error}"
            raise ApiError(422, message) from error
    return item


def _step(item: Any, step: dict[str, Any]) -> None:
    *parents, last = [_unescaped(part) for part in step["path"].split("/")[1:]]
    for part in parents:
        item = item[int(part)] if isinstance(item, list) else item[part]
    operation = step["op"]
    if operation == "test":
        if _at(item, last) != step["value"]:
            raise ValueError(f"testing value {step['path']} failed")
    elif operation == "remove":
        del item[int(last) if isinstance(item, list) else last]
    elif operation == "replace":
        _at(item, last)
        item[int(last) if isinstance(item, list) else last] = step["value"]
    elif operation == "add":
        _add(item, last, step["value"])
    else:
        raise ValueError(f"operation {operation} is not known here")


def _at(item: Any, part: str) -> Any:
    return item[int(part)] if isinstance(item, list) else item[part]


def _add(item: Any, part: str, value: Any) -> None:
    if isinstance(item, list):
        item.insert(len(item) if part == "-" else int(part), value)
    else:
        item[part] = value


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
