"""Any candidate, whatever its sum."""

from collections import Counter

import numpy as np

from routing.pickers.uniform import RandomPicker


def test_sums_do_not_matter() -> None:
    rng = np.random.default_rng(1)

    first = Counter(RandomPicker().pick(np.array([9.0, 0.0, 1.0]), rng)[0] for _ in range(900))

    assert min(first.values()) > 240
