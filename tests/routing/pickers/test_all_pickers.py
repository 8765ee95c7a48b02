"""Orders of candidates: complete, fair between equals, by weight where weights are asked for."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.pool.policies.plugins import PICKERS

TOTALS = st.lists(st.floats(0, 10), min_size=1, max_size=30)


@pytest.mark.parametrize("name", sorted(PICKERS))
@given(totals=TOTALS)
def test_every_candidate_comes_exactly_once(name: str, totals: list[float]) -> None:
    order = PICKERS[name]().pick(np.array(totals), np.random.default_rng(1))

    assert sorted(order) == list(range(len(totals)))


@pytest.mark.lesson("W21")
@pytest.mark.parametrize("name", sorted(PICKERS))
@pytest.mark.parametrize("total", [0.0, 2.5])
def test_equal_sums_come_first_equally_often(name: str, total: float) -> None:
    rng, picker = np.random.default_rng(1), PICKERS[name]()

    first = Counter(picker.pick(np.full(3, total), rng)[0] for _ in range(900))

    assert min(first.values()) > 240
