"""The call that answers a chat with tools."""

import json
from typing import Any

import pytest

from routing.testbed.errors import ApiError
from routing.testbed.tools import ToolCall, chosen

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock"}}


def body(role: str = "user", **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": "x"}], "tools": [WEATHER, CLOCK]} | more


@pytest.mark.parametrize("choice", [None, "auto", "required"])
def test_the_first_tool_is_called_with_what_its_schema_requires(choice: str | None) -> None:
    assert chosen(body(tool_choice=choice)) == ToolCall("weather", '{"city":"the"}')


def test_a_named_function_is_called() -> None:
    named = {"type": "function", "function": {"name": "clock"}}

    assert chosen(body(tool_choice=named)) == ToolCall("clock", "{}")


@pytest.mark.parametrize(
    ("role", "choice", "is_call"),
    [("tool", "auto", False), ("tool", "required", True), ("user", "none", False)],
)
def test_a_result_is_answered_in_words_unless_a_call_is_required(
    role: str, choice: str, is_call: bool
) -> None:
    assert (chosen(body(role, tool_choice=choice)) is not None) == is_call


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": 5},
        {"tools": [5]},
        {"tools": [{"type": "function"}]},
        {"tools": [{"function": {"name": 5}}]},
        {"tools": None, "tool_choice": "required"},
        {"tool_choice": {"function": {"name": "nobody"}}},
        {"tool_choice": "sometimes"},
    ],
)
def test_wrong_tools_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ApiError):
        chosen(body(**wrong))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "number"}, 1.5),
        ({"type": "boolean"}, True),
        ({"enum": ["red", "blue"]}, "red"),
        ({"const": 7}, 7),
        ({"type": "array", "minItems": 1, "items": {"type": "integer"}}, [1]),
        ({"type": "array"}, []),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"a": "the"}),
        ({"type": ["string", "null"]}, None),
        ("nonsense", None),
    ],
)
def test_arguments_are_the_smallest_that_a_schema_allows(schema: Any, value: Any) -> None:
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}

    call = chosen(body(tools=[tool]))

    assert call is not None
    assert json.loads(call.arguments) == {"x": value}


def test_a_schema_that_repeats_itself_stays_small() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {
            "type": "array",
            "minItems": 100,
            "items": {"type": "object", "properties": {"a": schema}, "required": ["a"] * 100},
        }
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}

    call = chosen(body(tools=[tool]))

    assert call is not None
    assert len(call.arguments) < 10_000
