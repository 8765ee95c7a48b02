"""Ranges of prompt tokens in a label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.scoring import Context
from routing.scorers.context_length import ContextLengthAware, ranges_of
from tests.routing.contexts import make_context
from tests.routing.pool.builders import make_request

LABEL = "llm-d.ai/context-length-range"


def context_of(*ranges: str | None) -> Context:
    labels = [{} if text is None else {LABEL: text} for text in ranges]
    # About 1,500 tokens.
    return make_context(len(ranges), labels=labels, request=make_request("word " * 1200))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0-2048", ((0, 2048),), id="one"),
        pytest.param("0-10, 20-30", ((0, 10), (20, 30)), id="several"),
        pytest.param("", (), id="none"),
        pytest.param("2048", (), id="no-range"),
        pytest.param("9-3", (), id="upside-down"),
        pytest.param("0-x", (), id="no-number"),
        pytest.param("0-²", (), id="digit-that-is-no-number"),
    ],
)
def test_ranges_of(text: str, expected: tuple[tuple[int, int], ...]) -> None:
    assert ranges_of(text) == expected


@given(st.text(max_size=60))
def test_no_label_breaks_it(text: str) -> None:
    assert all(low <= high for low, high in ranges_of(text))


def test_the_range_that_holds_the_prompt_wins_and_the_nearer_one_is_next() -> None:
    context = context_of("0-4096", "2000-9000", "8000-16000", None)

    scores = ContextLengthAware().score(context)

    assert scores[0] == 1.0
    assert scores[3] == 0.5
    assert 0.3 >= scores[1] > scores[2] > 0


def test_it_filters_only_when_told_to() -> None:
    context = context_of("0-4096", "8000-16000", None)

    assert ContextLengthAware().keep(context).tolist() == [True, True, True]
    assert ContextLengthAware(enable_filtering=True).keep(context).tolist() == [True, False, True]
    assert np.isfinite(ContextLengthAware().score(context)).all()
