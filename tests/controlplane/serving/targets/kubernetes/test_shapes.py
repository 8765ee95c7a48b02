"""Reading of objects of any shape."""

from typing import Any

import pytest

from controlplane.serving.targets.kubernetes import shapes


@pytest.mark.parametrize("odd", [None, 3, "text", [], [1], {"a": None}, {"a": {"b": {}}}])
def test_what_is_not_there_or_of_another_type_is_not_there(odd: Any) -> None:
    assert shapes.text(odd, "a", "b") == ""
    assert shapes.whole(odd, "a", "b") is None
    assert shapes.rows(odd, "a", "b") == []
    assert shapes.condition(odd, "Ready") is None
    assert not shapes.is_true(odd, "a", "b")


def test_true_is_no_number_and_a_long_text_is_cut() -> None:
    assert shapes.whole({"a": True}, "a") is None
    assert len(shapes.text({"a": "x" * 10_000}, "a")) == shapes.MOST_CHARACTERS


@pytest.mark.parametrize("written", ["", "yesterday", "2026-12-01T10:00:00", 5])
def test_a_time_without_an_offset_is_no_time(written: Any) -> None:
    assert shapes.moment({"a": written}, "a") is None


def test_a_time_is_read_as_unix_seconds() -> None:
    assert shapes.moment({"a": "2026-12-01T10:05:00Z"}, "a") == 1796119500.0
