"""What every filter keeps: one answer per candidate, and somebody of equal candidates."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.pool.policies.plugins import FILTERS
from tests.routing.contexts import StatedTerms, make_context

PARAMETERS: dict[str, dict[str, Any]] = {"by-label": {"label": "zone", "allows_no_label": True}}
NAMES = sorted(set(FILTERS) - {"prefill-filter"})


@pytest.mark.lesson("W25")
@pytest.mark.parametrize("name", NAMES)
@given(
    shares=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    ttft=st.lists(st.one_of(st.just(float("nan")), st.floats(0, 50)), min_size=4, max_size=4),
    in_flight=st.lists(st.integers(0, 10**7), min_size=4, max_size=4),
    rows=st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True),
    session=st.integers(-1, 3),
)
@settings(max_examples=30, deadline=None)
def test_one_answer_per_candidate_and_somebody_stays(
    name: str,
    shares: list[float],
    ttft: list[float],
    in_flight: list[int],
    rows: list[int],
    session: int,
) -> None:
    context = make_context(
        4,
        rows=rows,
        shares=shares,
        in_flight=in_flight,
        session=session,
        terms=StatedTerms(ttft, ttft),
        slo_ttft_seconds=20.0,
        slo_tpot_seconds=20.0,
    )

    kept = FILTERS[name](**PARAMETERS.get(name, {})).keep(context)

    assert kept.dtype == np.bool_
    assert kept.shape == (len(rows),)
    assert kept.any()
