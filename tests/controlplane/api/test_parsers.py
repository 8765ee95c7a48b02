"""JSON in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.api.errors import MalformedJsonError
from controlplane.api.parsers import LARGEST_INTEGER, MAX_DEPTH, load

SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
)
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/"), inner, max_size=3),
)


@given(VALUES)
def test_json_comes_back_as_it_was(value: object) -> None:
    assert load(json.dumps(value).encode()) == value


@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1])
def test_depth_is_bounded(levels: int) -> None:
    body = b"[" * levels + b"]" * levels

    if levels <= MAX_DEPTH:
        load(body)
    else:
        with pytest.raises(MalformedJsonError, match="64 levels"):
            load(body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"a": }', "line 1, column 7"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b"[Infinity]", "Infinity is not a JSON number"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "deeper"),
        (b"1" * 5_000, "more than 64 bits"),
        (b"[9223372036854775808]", "more than 64 bits"),
        (b"-1e400", "-1e400 is not a JSON number"),
        (b'{"a": ["\\u0000"]}', "u0000"),
        (b'{"\\ud800": 1}', "surrogate"),
    ],
)
def test_the_error_says_what_is_wrong(body: bytes, why: str) -> None:
    with pytest.raises(MalformedJsonError, match=why):
        load(body)
