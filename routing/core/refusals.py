"""Why a document is refused, with a pointer to the field and what is allowed there."""

import difflib
import re
from typing import Any

_PATH = re.compile(r" - at `(?P<path>[^`]+)`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")


class DocumentError(Exception):
    """A document was refused. `pointer` is a JSON pointer to the field, "" for the whole."""

    def __init__(self, pointer: str, message: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message
        self.allowed = allowed


def refusal(text: str, schema: dict[str, Any]) -> DocumentError:
    """A decoder's complaint as a sentence with a pointer; `schema` gives the names allowed."""
    path = _PATH.search(text)
    pointer = _pointer(path["path"]) if path else ""
    message = _PATH.sub("", text)
    unknown = _UNKNOWN.search(message)
    if not unknown:
        choices = _node_at(pointer, schema).get("enum", ())
        return DocumentError(pointer, f"{message}.", tuple(map(str, choices)))
    known = sorted(_fields_at(pointer, schema))
    near = difflib.get_close_matches(unknown["name"], known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return DocumentError(
        f"{pointer}/{unknown['name']}", f"Unknown field '{unknown['name']}'.{hint}", tuple(known)
    )


def _pointer(path: str) -> str:
    steps = (match["field"] or match["index"] for match in _STEP.finditer(path.removeprefix("$")))
    return "".join(f"/{step}" for step in steps)


def _fields_at(pointer: str, schema: dict[str, Any]) -> set[str]:
    """Names that the struct at a pointer knows; the schema tells which struct stands there."""
    return set(_node_at(pointer, schema).get("properties", {}))


def _node_at(pointer: str, schema: dict[str, Any]) -> dict[str, Any]:
    node: dict[str, Any] = _resolve(schema, schema)
    for step in pointer.split("/")[1:]:
        below = node.get("properties", {}).get(step) or node.get("items")
        below = below or node.get("additionalProperties") or {}
        node = _resolve(schema, below)
    return node


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    for option in node.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolve(schema, option)
    if "$ref" in node:
        found: dict[str, Any] = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        return found
    return node
