"""Which tool a simulated model calls, and with which arguments.

A real model chooses; this one calls the first tool that it may whenever somebody other than a tool
spoke last, with the smallest arguments that the tool's JSON schema allows. So a loop of calls and
results ends, and a client gets what it can parse.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from routing.testbed.errors import ApiError

MOST_DEPTH = 6
"""Schemas nest; deeper parts are given as null."""
MOST_ITEMS = 2
"""Of an array; with the depth it bounds what a small schema can blow up to."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function and its arguments as JSON text."""

    name: str
    arguments: str


def chosen(body: Mapping[str, Any]) -> ToolCall | None:
    """The call that answers a chat, `None` for an answer in words. Raises ApiError."""
    functions = _functions(body)
    choice = body.get("tool_choice")
    if not functions or choice == "none":
        if choice == "required" or isinstance(choice, dict):
            raise ApiError("A tool_choice needs tools to choose from.", param="tool_choice")
        return None
    if isinstance(choice, dict):
        return _call(_named(choice, functions))
    if choice not in (None, "auto", "required"):
        raise ApiError(
            f"tool_choice is {choice!r}; it is none, auto, required or a function.",
            param="tool_choice",
        )
    if choice != "required" and _last_role(body) == "tool":
        return None
    return _call(functions[0])


def _functions(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise ApiError("tools must be a list.", param="tools")
    found = [tool.get("function") if isinstance(tool, dict) else None for tool in tools]
    for index, function in enumerate(found):
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ApiError(
                f"tools[{index}] has no function with a name.", param=f"tools.{index}.function"
            )
    return [function for function in found if function is not None]


def _named(choice: Mapping[str, Any], functions: list[dict[str, Any]]) -> dict[str, Any]:
    inner = choice.get("function")
    name = inner.get("name") if isinstance(inner, dict) else None
    for function in functions:
        if function["name"] == name:
            return function
    raise ApiError(f"tool_choice names {name!r}, which is not in tools.", param="tool_choice")


def _last_role(body: Mapping[str, Any]) -> str | None:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return last.get("role") if isinstance(last, dict) else None


def _call(function: Mapping[str, Any]) -> ToolCall:
    arguments = _value(function.get("parameters") or {"type": "object"}, MOST_DEPTH)
    return ToolCall(name=function["name"], arguments=orjson.dumps(arguments).decode())


_PLAIN: dict[str, Any] = {"string": "the", "integer": 1, "number": 1.5, "boolean": True}


def _value(schema: object, depth: int) -> Any:
    """The smallest value that a schema allows, as far as its plain words are concerned."""
    if not isinstance(schema, dict) or not depth:
        return None
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return _object(schema, depth)
    return _array(schema, depth) if kind == "array" else _PLAIN.get(str(kind))


def _array(schema: Mapping[str, Any], depth: int) -> list[Any]:
    least = schema.get("minItems")
    count = least if isinstance(least, int) and 0 <= least <= MOST_ITEMS else 0
    return [_value(schema.get("items"), depth - 1) for _ in range(count)]


def _object(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    # Each name once: a schema that repeats one at every level would grow without bound.
    wanted = dict.fromkeys(name for name in names if isinstance(name, str))
    return {name: _value(properties.get(name), depth - 1) for name in wanted}
