"""Objectives and rewrites as lines, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.rulelines import (
    RuleLineError,
    objectives_of,
    objectives_text,
    rewrites_of,
    rewrites_text,
)

NAMES = st.sampled_from(["chat", "ibm/granite-4.1:8b", "gpt-4o", "그래니트", "10", "-5", "x-"])
WEIGHTED = st.fixed_dictionaries({"model": NAMES, "weight": st.integers(1, 1_000_000)})
RULES = st.fixed_dictionaries(
    {
        "models": st.lists(NAMES, max_size=3, unique=True),
        "targets": st.lists(WEIGHTED, min_size=1, max_size=3)
        | st.lists(st.fixed_dictionaries({"model": NAMES}), min_size=1, max_size=3),
    }
)


@given(st.dictionaries(NAMES, st.integers(-(2**31), 2**31 - 1), max_size=6))
def test_objectives_come_back_from_their_lines(objectives: dict[str, int]) -> None:
    assert objectives_of(objectives_text(objectives)) == objectives


@given(st.lists(RULES, max_size=5))
def test_rewrites_come_back_from_their_lines(rewrites: list[dict[str, object]]) -> None:
    assert rewrites_of(rewrites_text(rewrites)) == rewrites


def test_lines_are_read_as_people_write_them() -> None:
    assert objectives_of("\n interactive   10\n\nbatch -5 \n") == {"interactive": 10, "batch": -5}
    assert rewrites_of("chat,assistant->granite 90,  granite-legal 10\n* -> granite") == [
        {
            "models": ["chat", "assistant"],
            "targets": [
                {"model": "granite", "weight": 90},
                {"model": "granite-legal", "weight": 10},
            ],
        },
        {"models": [], "targets": [{"model": "granite"}]},
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a 1\nb", 2),
        ("a high", 1),
        ("a 1.5", 1),
        ("a 1 2", 1),
        ("a 1\n\na 2", 3),
        ("a " + "9" * 50, 1),
    ],
)
def test_an_objective_that_cannot_be_read_is_named_by_its_line(text: str, line: int) -> None:
    with pytest.raises(RuleLineError, match=f"^Line {line}: "):
        objectives_of(text)


@pytest.mark.parametrize(
    "text", ["chat", "chat ->", "-> granite", "a b -> c", "*, a -> b", "a -> b 1 2", "a -> b x"]
)
def test_a_rewrite_that_cannot_be_read_is_named_by_its_line(text: str) -> None:
    with pytest.raises(RuleLineError, match=r"^Line 2: "):
        rewrites_of(f"ok -> fine\n{text}")


def test_lines_are_bounded() -> None:
    with pytest.raises(RuleLineError, match="at most 500 lines"):
        objectives_of("\n" * 501)
