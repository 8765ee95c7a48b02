"""Coordinate descent finds the bottom of a valley, and says what it saw there."""

import math
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.simulator.calibration.search import descend


def _valley(bottom: Mapping[str, float]) -> Callable[[Mapping[str, float]], float]:
    def loss(factors: Mapping[str, float]) -> float:
        return sum(abs(math.log(factors[name] / at)) for name, at in bottom.items())

    return loss


factors = st.floats(0.3, 3.0)


@given(factors, factors)
@settings(max_examples=30)
def test_the_bottom_is_found_within_the_finest_step(one: float, other: float) -> None:
    bottom = {"a": one, "b": other}

    found, lowest = descend(_valley(bottom), ("a", "b"), passes=20)

    assert found["a"] == pytest.approx(one, rel=0.07)
    assert found["b"] == pytest.approx(other, rel=0.07)
    assert lowest == pytest.approx(_valley(bottom)(found))


def test_what_makes_no_difference_stays_where_it_is() -> None:
    found, _ = descend(lambda factors: 1.0, ("a", "b"))

    assert found == {"a": 1.0, "b": 1.0}
