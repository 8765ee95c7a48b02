"""Recursive least squares: it finds what is there, and stays sane when nothing is."""

import json

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


def test_factors_that_are_alike_at_the_start_move_together() -> None:
    estimate = RelativeLeastSquares(2, variance=0.25, together=0.8)

    for _ in range(10):
        estimate.update([1.0, 0.0], 3.0)

    assert estimate.factors[0] == pytest.approx(3.0, rel=0.1)
    # Never seen, but a card that is slow in one part is probably slow in the other.
    assert 2.0 < estimate.factors[1] < 3.0


def learned() -> RelativeLeastSquares:
    rng = np.random.default_rng(1)
    estimate = RelativeLeastSquares(3, together=0.5)
    for _ in range(100):
        parts = rng.uniform(0.1, 1.0, 3)
        estimate.update(parts.tolist(), float(parts.sum() * 1.7))
    return estimate


@pytest.mark.parametrize("age_share", [0.0, 0.4, 1.0])
def test_what_is_kept_comes_back_less_certain_with_age(age_share: float) -> None:
    before, after = learned(), RelativeLeastSquares(3, together=0.5)

    after.restore(json.loads(json.dumps(before.export())), age_share=age_share)

    assert after.factors == before.factors
    assert after.samples == before.samples
    pairs = zip(before.variances, after.variances, strict=True)
    for kept, aged in pairs:
        assert aged == pytest.approx(kept + age_share * (PRIOR_VARIANCE - kept))


@pytest.mark.parametrize(
    "damage",
    [
        {"factors": [1.0, 1.0]},
        {"factors": [1.0, 1.0, 99.0]},
        {"factors": [1.0, 1.0, float("nan")]},
        {"factors": "many"},
        {"covariance": [[1.0] * 3] * 2},
        {"covariance": [[1e9, 0, 0], [0, 1e9, 0], [0, 0, 1e9]]},
        {"covariance": [[0.1, 0.2, 0], [0.2, 0.1, 0], [0, 0, 0.1]]},
        {"covariance": None},
        {"noise_variance": -1},
        {"noise_variance": float("inf")},
        {"samples": -3},
        {"samples": None},
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(damage: dict[str, object]) -> None:
    estimate = RelativeLeastSquares(3, together=0.5)

    with pytest.raises(ValueError, match="kept"):
        estimate.restore(learned().export() | damage, age_share=0.0)

    assert estimate.factors == [1.0] * 3
    assert estimate.samples == 0
