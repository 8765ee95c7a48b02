"""Axes have a few round values, whatever their size."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.console.ticks import LEAST_TOP, ticks


@given(st.floats(min_value=LEAST_TOP, max_value=1e300), st.integers(3, 4))
@example(LEAST_TOP, 3)
@example(2e-5, 4)
def test_values_are_below_the_top_and_evenly_apart(top: float, most: int) -> None:
    found = ticks(top, most=most)

    assert 1 <= len(found) <= most
    assert all(0 < value < top for value in found)
    assert [value / found[0] for value in found] == pytest.approx(range(1, len(found) + 1))


@pytest.mark.parametrize(
    ("top", "found"),
    [(1.0, [0.5]), (100.0, [50.0]), (112.0, [50.0, 100.0]), (7.0, [2.0, 4.0, 6.0])],
)
def test_round_values(top: float, found: list[float]) -> None:
    assert ticks(top, most=3) == pytest.approx(found)
