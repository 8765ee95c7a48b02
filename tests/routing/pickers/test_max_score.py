"""The highest sum first, ties at random."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from routing.pickers.max_score import MaxScorePicker

TOTALS = st.lists(st.floats(0, 10), min_size=1, max_size=30)


@given(TOTALS)
def test_max_score_orders_by_the_sum(totals: list[float]) -> None:
    order = MaxScorePicker().pick(np.array(totals), np.random.default_rng(1))

    assert (np.diff(np.array(totals)[order]) <= 1e-8).all()


def test_a_sum_that_differs_in_its_last_bits_only_is_a_tie() -> None:
    rng, picker = np.random.default_rng(1), MaxScorePicker()

    first = Counter(picker.pick(np.array([0.1 + 0.2, 0.3]), rng)[0] for _ in range(200))

    assert min(first.values()) > 60
