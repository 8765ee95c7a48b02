"""JSON patch (RFC 6902) on plain values: add, remove, replace, move, copy and test."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

MOST_OPERATIONS = 500


class JsonPatchError(Exception):
    """An operation does not fit; the message says which and why."""


def put_on(value: Any, operations: Sequence[Any]) -> Any:
    """The value after all operations; the one given stays as it is. Raises JsonPatchError."""
    if len(operations) > MOST_OPERATIONS:
        raise JsonPatchError(f"more than {MOST_OPERATIONS} operations.")
    document = {"": deepcopy(value)}
    for place, operation in enumerate(operations):
        try:
            _run(document, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise JsonPatchError(f"operation {place}: {_reason(error)}.") from error
    return document.get("")


def _run(document: dict[str, Any], operation: Any) -> None:
    if not isinstance(operation, Mapping):
        raise TypeError("an operation is a mapping with 'op' and 'path'")
    name = operation.get("op")
    if not isinstance(name, str) or name not in _OPERATIONS:
        raise ValueError(f"'{name}' is not one of {', '.join(sorted(_OPERATIONS))}")
    _OPERATIONS[name](document, operation)


def _add(document: Any, operation: Mapping[str, Any]) -> None:
    _put(document, _steps(operation, "path"), deepcopy(_given(operation, "value")))


def _remove(document: Any, operation: Mapping[str, Any]) -> None:
    _take(document, _steps(operation, "path"))


def _replace(document: Any, operation: Mapping[str, Any]) -> None:
    steps = _steps(operation, "path")
    _take(document, steps)
    _put(document, steps, deepcopy(_given(operation, "value")))


def _move(document: Any, operation: Mapping[str, Any]) -> None:
    source, target = _steps(operation, "from"), _steps(operation, "path")
    if source != target and target[: len(source)] == source:
        raise ValueError("a value cannot be moved into itself")
    _put(document, target, _take(document, source))


def _copy(document: Any, operation: Mapping[str, Any]) -> None:
    found = deepcopy(_at(document, _steps(operation, "from")))
    _put(document, _steps(operation, "path"), found)


def _test(document: Any, operation: Mapping[str, Any]) -> None:
    found, wanted = _at(document, _steps(operation, "path")), _given(operation, "value")
    # In JSON true is no number, in Python it equals 1.
    if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
        raise ValueError(f"the value at '{operation['path']}' is another one")


_OPERATIONS: Mapping[str, Callable[[Any, Mapping[str, Any]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _given(operation: Mapping[str, Any], name: str) -> Any:
    if name not in operation:
        raise ValueError(f"'{name}' is missing")
    return operation[name]


def _steps(operation: Mapping[str, Any], name: str) -> list[str]:
    """A pointer (RFC 6901) as steps from the outer value, whose first step is empty."""
    pointer = _given(operation, name)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise ValueError(f"'{pointer}' is not a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _at(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        value = value[_index(value, step)] if isinstance(value, list) else value[step]
    return value


def _put(document: Any, steps: Sequence[str], value: Any) -> None:
    holder, last = _at(document, steps[:-1]), steps[-1]
    if isinstance(holder, list):
        holder.insert(len(holder) if last == "-" else _index(holder, last, more=1), value)
    elif isinstance(holder, dict):
        holder[last] = value
    else:
        raise TypeError(f"'{last}' has nothing to be put into")


def _take(document: Any, steps: Sequence[str]) -> Any:
    holder, last = _at(document, steps[:-1]), steps[-1]
    if isinstance(holder, list):
        return holder.pop(_index(holder, last))
    if isinstance(holder, dict):
        return holder.pop(last)
    raise TypeError(f"'{last}' has nothing to be taken from")


def _index(items: Sequence[Any], step: str, *, more: int = 0) -> int:
    plain = step.isascii() and step.isdecimal() and (step == "0" or not step.startswith("0"))
    if not plain or int(step) >= len(items) + more:
        raise ValueError(f"'{step}' is not a place in a list of {len(items)}")
    return int(step)


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no {error.args[0]!r}"
    return str(error) or type(error).__name__
