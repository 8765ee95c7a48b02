"""What every scorer keeps, whatever the state: length, range, one candidate, missing signals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.pool.policies.plugins import SCORERS
from tests.routing.contexts import StatedTerms, make_context
from tests.routing.pool.builders import make_request

NAMES = sorted(SCORERS)
COUNT = 4


def numbers(low: float, high: float) -> st.SearchStrategy[list[float]]:
    one = st.one_of(st.just(float("nan")), st.floats(low, high))
    return st.lists(one, min_size=COUNT, max_size=COUNT)


STATES = st.fixed_dictionaries(
    {
        "waiting": numbers(0, 1e6),
        "running": numbers(0, 1e6),
        "kv_usage": numbers(0, 1),
        "requests": st.lists(st.integers(0, 500), min_size=COUNT, max_size=COUNT),
        "shares": st.lists(st.floats(0, 1), min_size=COUNT, max_size=COUNT),
        "tokens": st.lists(st.floats(0, 1e6), min_size=COUNT, max_size=COUNT),
        "in_flight": st.lists(st.integers(0, 10**8), min_size=COUNT, max_size=COUNT),
        "cold": st.lists(st.integers(-1, 9), min_size=COUNT, max_size=COUNT),
        "session": st.integers(-1, COUNT - 1),
        "slo_ttft_seconds": st.floats(0, 10),
        "slo_tpot_seconds": st.floats(0, 1),
    }
)


@pytest.mark.lesson("W25")
@pytest.mark.parametrize("name", NAMES)
@given(
    state=STATES,
    latencies=st.tuples(numbers(0, 100), numbers(0, 1)),
    rows=st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=COUNT, unique=True),
)
@settings(max_examples=25, deadline=None)
def test_scores_are_one_per_candidate_and_lie_between_0_and_1(
    name: str, state: dict[str, Any], latencies: tuple[list[float], list[float]], rows: list[int]
) -> None:
    request = make_request(model="granite", adapter="support")
    context = make_context(
        COUNT, rows=rows, request=request, terms=StatedTerms(*latencies), **state
    )

    scores = SCORERS[name]().score(context)

    assert scores.shape == (len(rows),)
    known = scores[~np.isnan(scores)]
    assert ((known >= 0) & (known <= 1)).all()


@pytest.mark.lesson("W25")
@pytest.mark.parametrize("name", NAMES)
def test_candidates_that_are_equal_get_equal_scores(name: str) -> None:
    context = make_context(3, waiting=4, running=2, kv_usage=0.4, requests=3)

    scores = SCORERS[name]().score(context)

    assert len(set(scores.tolist())) == 1
    assert not np.isnan(scores).any()


@pytest.mark.lesson("W25")
@pytest.mark.parametrize("name", NAMES)
def test_without_any_signal_nobody_is_preferred(name: str) -> None:
    context = make_context(3)

    scores = SCORERS[name]().score(context)

    assert np.isnan(scores).all() or len(set(scores.tolist())) == 1
