"""JSON patch as RFC 6902 has it; its appendix A gives the examples."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.renderers._json_patch import JsonPatchError, put_on


@pytest.mark.parametrize(
    ("value", "operation", "expected"),
    [
        ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": 1}, {"foo": "bar", "baz": 1}),
        ({"foo": [1, 3]}, {"op": "add", "path": "/foo/1", "value": 2}, {"foo": [1, 2, 3]}),
        ({"foo": [1]}, {"op": "add", "path": "/foo/-", "value": [2]}, {"foo": [1, [2]]}),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
        ({"foo": [1, 2]}, {"op": "remove", "path": "/foo/0"}, {"foo": [2]}),
        ({"a": 1}, {"op": "replace", "path": "/a", "value": None}, {"a": None}),
        ({"a": {"b": 1}, "c": {}}, {"op": "move", "from": "/a/b", "path": "/c/d"},
         {"a": {}, "c": {"d": 1}}),
        ({"a": [1]}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1], "b": [1]}),
        ({"a/b": 1, "m~n": 2}, {"op": "test", "path": "/a~1b", "value": 1}, {"a/b": 1, "m~n": 2}),
        ({"a": 1}, {"op": "add", "path": "", "value": 2}, 2),
    ],
)  # fmt: skip
def test_an_operation(value: Any, operation: dict[str, Any], expected: Any) -> None:
    assert put_on(value, [operation]) == expected


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"op": "remove", "path": "/x"}, "there is no 'x'"),
        ({"op": "add", "path": "/a/b/c", "value": 1}, "operation 0"),
        ({"op": "add", "path": "/l/5", "value": 1}, "'5' is not a place"),
        ({"op": "add", "path": "/l/01", "value": 1}, "'01' is not a place"),
        ({"op": "add", "path": "a", "value": 1}, "not a JSON pointer"),
        ({"op": "add", "path": "/a"}, "'value' is missing"),
        ({"op": "test", "path": "/a", "value": True}, "another one"),
        ({"op": "move", "from": "/l", "path": "/l/0"}, "into itself"),
        ({"op": "explode", "path": "/a"}, "'explode' is not one of"),
        ("add", "an operation is a mapping"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(operation: Any, reason: str) -> None:
    with pytest.raises(JsonPatchError, match=reason):
        put_on({"a": 1, "l": [1]}, [operation])


def test_the_given_value_stays_as_it_is() -> None:
    value = {"a": {"b": [1]}}

    put_on(value, [{"op": "add", "path": "/a/b/-", "value": 2}])

    assert value == {"a": {"b": [1]}}


POINTERS = st.sampled_from(["", "/", "/a", "/a/0", "/a/-", "/b/c", "a", "/~1", "/a/99"])
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])},
    optional={"path": POINTERS, "from": POINTERS, "value": st.none() | st.integers()},
)


@given(st.lists(OPERATIONS, max_size=6))
def test_any_operations_are_put_on_or_refused(operations: list[dict[str, Any]]) -> None:
    value = {"a": [1, 2], "b": {"c": 3}}

    try:
        put_on(value, operations)
    except JsonPatchError as error:
        assert str(error).startswith("operation")  # noqa: PT017 - both outcomes are allowed

    assert value == {"a": [1, 2], "b": {"c": 3}}
