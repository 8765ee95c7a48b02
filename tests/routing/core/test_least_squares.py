"""Recursive least squares: it finds what is there, and stays sane when nothing is."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from routing.core.least_squares import FACTOR_RANGE, PRIOR_VARIANCE, RelativeLeastSquares


def test_factors_are_found_from_varied_observations() -> None:
    rng = np.random.default_rng(5)
    estimate, true = RelativeLeastSquares(3), np.array([1.8, 0.7, 1.2])

    for _ in range(400):
        parts = rng.uniform(0.1, 2.0, 3)
        estimate.update(parts.tolist(), float(parts @ true * rng.normal(1, 0.03)))

    assert estimate.factors == pytest.approx(true.tolist(), rel=0.1)
    assert max(estimate.variances) < PRIOR_VARIANCE
    assert estimate.samples == 400


def test_a_changed_machine_is_followed() -> None:
    estimate = RelativeLeastSquares(1)
    for _ in range(300):
        estimate.update([1.0], 1.0)

    for _ in range(300):
        estimate.update([1.0], 3.0)

    assert estimate.factors[0] == pytest.approx(3.0, rel=0.05)


def test_what_is_not_observed_keeps_its_prior() -> None:
    estimate = RelativeLeastSquares(2)

    for _ in range(500):
        estimate.update([1.0, 0.0], 2.0)

    assert estimate.factors == pytest.approx([2.0, 1.0], rel=0.01)
    assert estimate.variances[1] <= 2 * PRIOR_VARIANCE


@pytest.mark.parametrize("direction", [[1.0, 0.02, 0.0], [1.0, 1.0, 1.0], [0.5, 1e-9, 3.0]])
def test_one_sided_traffic_for_a_long_time_does_no_harm(direction: list[float]) -> None:
    estimate = RelativeLeastSquares(3)

    for turn in range(20_000):
        estimate.update(direction, sum(direction) * (1.5 if turn % 7 else 3.0))

    assert min(estimate.variances) > 0
    assert max(estimate.variances) <= PRIOR_VARIANCE
    predicted = np.dot(direction, estimate.factors)
    assert predicted == pytest.approx(1.7 * sum(direction), rel=0.25)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.floats(0, 1e6), min_size=2, max_size=2),
            st.floats(allow_nan=True, allow_infinity=True),
        ),
        max_size=60,
    )
)
def test_factors_stay_within_their_range_whatever_comes(
    observations: list[tuple[list[float], float]],
) -> None:
    estimate = RelativeLeastSquares(2)

    for parts, observed in observations:
        estimate.update(parts, observed)

    assert all(FACTOR_RANGE[0] <= factor <= FACTOR_RANGE[1] for factor in estimate.factors)
    assert all(np.isfinite(estimate.variances))
    assert sum(estimate.variances) <= 2 * PRIOR_VARIANCE + 1e-9
    assert all(variance >= -1e-9 for variance in estimate.variances)
