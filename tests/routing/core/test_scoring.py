"""Normalisation and sums: one candidate, equal candidates, missing values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.scoring import falling, weighted_sum
from tests.routing.contexts import NOW, StatedTerms, make_context

NAN = np.nan
SIGNALS = st.lists(st.one_of(st.just(NAN), st.floats(0, 1e9)), min_size=1, max_size=40)


@pytest.mark.lesson("W25")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([10, 5, 0], [0, 0.5, 1], id="linear-between-most-and-least"),
        pytest.param([7, 7, 7], [1, 1, 1], id="equal-values-give-1"),
        pytest.param([7], [1], id="one-candidate-gives-1"),
        pytest.param([0], [1], id="one-idle-candidate"),
        pytest.param([8, NAN, 0], [0, NAN, 1], id="unknown-stays-unknown"),
        pytest.param([8, NAN], [1, NAN], id="one-known-among-unknown"),
        pytest.param([NAN, NAN], [NAN, NAN], id="nothing-known"),
        pytest.param([], [], id="nobody"),
    ],
)
def test_falling(values: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(falling(np.array(values, dtype=float)), expected)


@given(SIGNALS)
def test_normalised_scores_lie_between_0_and_1_and_the_least_gets_1(values: list[float]) -> None:
    column = np.array(values)

    scores = falling(column)

    known = ~np.isnan(column)
    assert ((scores[known] >= 0) & (scores[known] <= 1)).all()
    assert np.isnan(scores[~known]).all()
    if known.any():
        assert scores[known][column[known].argmin()] == 1


@given(SIGNALS)
def test_less_never_scores_lower(values: list[float]) -> None:
    column = np.array([value for value in values if not np.isnan(value)])

    scores = falling(column)

    assert (np.diff(scores[np.argsort(column)]) <= 0).all()


@pytest.mark.lesson("W25")
def test_an_unknown_score_counts_as_neither_idle_nor_saturated() -> None:
    total = weighted_sum([(2.0, np.array([0.0, NAN, 1.0]))], 3)

    np.testing.assert_allclose(total, [0, 1, 2])


def test_scores_are_clamped_before_they_are_weighted() -> None:
    total = weighted_sum([(1.0, np.array([-3.0, 7.0])), (0.5, np.array([1.0, 1.0]))], 2)

    np.testing.assert_allclose(total, [0.5, 1.5])


def test_a_reading_older_than_two_seconds_is_unknown() -> None:
    context = make_context(3, waiting=[1, 2, 3], observed_at=[NOW - 3, NOW - 1, NAN])

    np.testing.assert_allclose(context.reading(context.table.waiting), [NAN, 2, NAN])


def test_predicted_latencies_are_unknown_without_a_price() -> None:
    ttft, tpot = make_context(2).latencies()

    assert np.isnan(ttft).all()
    assert np.isnan(tpot).all()


def test_headroom_is_target_minus_prediction_of_the_candidates() -> None:
    context = make_context(
        3, rows=[2, 0], terms=StatedTerms([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]), slo_ttft_seconds=2.0
    )

    ttft, tpot = context.headroom()

    np.testing.assert_allclose(ttft, [-1, 1])
    np.testing.assert_allclose(tpot, [-0.3, -0.1])
