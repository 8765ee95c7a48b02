"""In proportion to the sum."""

from collections import Counter

import numpy as np
import pytest

from routing.pickers.weighted_random import WeightedRandomPicker


def test_weighted_random_draws_in_proportion() -> None:
    rng, picker = np.random.default_rng(1), WeightedRandomPicker()

    first = Counter(picker.pick(np.array([3.0, 1.0, 0.0]), rng)[0] for _ in range(2000))

    assert first[0] / 2000 == pytest.approx(0.75, abs=0.04)
    assert first[2] == 0
