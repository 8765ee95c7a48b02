"""Prompts as chains of block keys."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.simulator.requests import Arrival, Course, Prompt, prompt_of

PARTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), max_size=4)


@given(PARTS, PARTS, PARTS)
def test_what_prompts_have_in_common_at_the_start_has_equal_keys(
    common: list[tuple[int, int]], one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    first, second = prompt_of([*common, *one]), prompt_of([*common, *other])

    whole = sum(tokens for _, tokens in common) // 64
    assert first.keys[:whole] == second.keys[:whole]


@given(PARTS)
def test_there_is_a_key_for_each_whole_block(parts: list[tuple[int, int]]) -> None:
    prompt = prompt_of(parts, block_tokens=16)

    assert prompt.tokens == sum(tokens for _, tokens in parts)
    assert len(prompt.keys) == prompt.tokens // 16


def test_texts_that_differ_share_nothing_after_the_difference() -> None:
    one = prompt_of([("system", 64), ("a", 64), ("tail", 640)])
    other = prompt_of([("system", 64), ("b", 64), ("tail", 640)])

    assert [a == b for a, b in zip(one.keys, other.keys, strict=True)] == [True] + 11 * [False]


def course(**values: Any) -> Course:
    arrival = Arrival(at=0.0, prompt=Prompt((), 10), output_tokens=5)
    return Course(0, 0, arrival, 1.0, **values)


def test_what_did_not_happen_has_no_time() -> None:
    assert (course().ttft, course().tpot, course().e2e) == (None, None, None)


def test_times_of_an_answer() -> None:
    answered = course(first_token_at=3.0, ended_at=5.0, output_tokens=5)

    assert (answered.ttft, answered.tpot, answered.e2e) == (2.0, pytest.approx(0.5), 4.0)


def test_an_answer_of_one_token_has_no_time_per_token() -> None:
    assert course(first_token_at=3.0, ended_at=3.0, output_tokens=1).tpot is None
