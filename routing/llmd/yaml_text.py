"""YAML in and out, bounded: a text of a stranger costs bounded time and memory.

Refused are more than 1 MiB, more than 20,000 values after aliases are expanded, nesting beyond 40,
more than 50 aliases, keys that stand twice in one mapping, and every tag but the plain ones.
"""

import math
from collections.abc import Callable
from typing import Any

import yaml

from routing.core.refusals import DocumentError

MAX_BYTES = 1024 * 1024
MAX_VALUES = 20_000
MAX_DEPTH = 40
MAX_ALIASES = 50
_TOO_MANY = f"The text holds more than {MAX_VALUES} values."


class _Loader(yaml.SafeLoader):
    """SafeLoader that counts nodes, aliases and depth while it composes, and refuses repeated keys.

    Each value is a node and so is each key: with more than twice as many nodes as there may be
    values it stops, because a text of 1 MiB in small pieces would take half a minute.
    """

    nodes = 0
    aliases = 0
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.nodes += 1
        if self.nodes > 2 * MAX_VALUES:
            raise DocumentError("", _TOO_MANY)
        if self.check_event(yaml.events.AliasEvent):
            self.aliases += 1
            if self.aliases > MAX_ALIASES:
                raise yaml.YAMLError(f"more than {MAX_ALIASES} aliases")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.YAMLError(f"nested deeper than {MAX_DEPTH}")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - signature of the library
        seen = set()
        for key, _ in node.value:
            name = getattr(key, "value", None)
            if isinstance(name, str) and name in seen and name != "<<":
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"the key '{name}' stands twice, again in line {line}")
            if isinstance(name, str):
                seen.add(name)
        return super().construct_mapping(node, deep=deep)


class _ObjectLoader(_Loader):
    """Leaves times as text: objects of a cluster have some, and JSON has no other form of them."""


_ObjectLoader.yaml_implicit_resolvers = {
    sign: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
    for sign, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def load(text: str | bytes) -> Any:
    """The one document in a text; `None` for an empty one. Raises DocumentError."""
    return _checked(text, _one)


def load_all(text: str | bytes) -> list[Any]:
    """All documents in a text, in order; times stay text. Raises DocumentError."""
    found: list[Any] = _checked(text, _every)
    return found


def _one(raw: bytes) -> Any:
    loader = _Loader(raw)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _every(raw: bytes) -> list[Any]:
    return list(yaml.load_all(raw, Loader=_ObjectLoader))


def _checked(text: str | bytes, parse: Callable[[bytes], Any]) -> Any:
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > MAX_BYTES:
        raise DocumentError("", f"The text has {len(raw)} bytes; at most {MAX_BYTES} are read.")
    try:
        tree = parse(raw)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        # An impossible date, a number of thousands of digits: the library says ValueError.
        problem = " ".join(str(error).split())[:300]
        raise DocumentError("", f"The text is no YAML that can be read: {problem}.") from error
    _count(tree)
    return tree


def dump(tree: Any) -> str:
    """As text, in the order of the tree."""
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=100)


def _count(tree: Any) -> None:
    """Walk what aliases expand to, so that nobody after us has to be afraid of it.

    Only what JSON can say is let in: nothing else would be written back as it was.
    """
    left, stack = MAX_VALUES, [(tree, "", 0)]
    while stack:
        value, pointer, depth = stack.pop()
        left -= 1
        if left < 0 or depth > 2 * MAX_DEPTH:
            raise DocumentError("", _TOO_MANY)
        if isinstance(value, dict):
            for name, child in value.items():
                _check_key(name, pointer)
                stack.append((child, f"{pointer}/{name}", depth + 1))
        elif isinstance(value, list):
            stack.extend(
                (child, f"{pointer}/{place}", depth + 1) for place, child in enumerate(value)
            )
        else:
            _check_scalar(value, pointer)


def _check_key(name: Any, pointer: str) -> None:
    if not isinstance(name, str):
        raise DocumentError(pointer, f"The key {name!r} is no text; quote it.")
    _check_scalar(name, pointer)


def _check_scalar(value: Any, pointer: str) -> None:
    if isinstance(value, str) and not _is_text(value):
        raise DocumentError(pointer, f"The text {value!r} holds half a character.")
    if not _is_plain(value):
        word = f"A value of type {type(value).__name__} may not stand here."
        raise DocumentError(pointer, word)


def _is_text(value: str) -> bool:
    """An escape can name half of a pair, which nobody can write into a file."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return (
        value is None
        or isinstance(value, (str, bool))
        or (isinstance(value, int) and abs(value) < 2**63)
    )
