"""Less of each object."""

from typing import Any

import pytest

from controlplane.api.shapes import shaped
from controlplane.common.errors import InvalidParameterError

ROW = {"id": 1, "slug": "s", "name": "n", "spec": {"a": 1, "b": {"c": 2, "d": 3}}}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ROW),
        ({"fields": "name"}, {"name": "n"}),
        ({"fields": "spec.a,spec.b.c"}, {"spec": {"a": 1, "b": {"c": 2}}}),
        ({"fields": "nothing"}, {}),
        ({"omit": "spec,name"}, {"id": 1, "slug": "s"}),
        ({"omit": "spec.b.c,name,id,slug"}, {"spec": {"a": 1, "b": {"d": 3}}}),
        ({"brief": "true"}, {"id": 1, "slug": "s"}),
        ({"brief": "false"}, ROW),
    ],
)
def test_a_row_has_what_was_asked_for(query: dict[str, str], expected: Any) -> None:
    assert shaped(ROW, query) == expected


def test_a_page_keeps_its_frame() -> None:
    page = {"items": [ROW], "next": None, "as_of": "now"}

    assert shaped(page, {"fields": "id"}) == page | {"items": [{"id": 1}]}


def test_brief_is_true_or_false() -> None:
    with pytest.raises(InvalidParameterError, match="'yes'"):
        shaped(ROW, {"brief": "yes"})
