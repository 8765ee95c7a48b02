"""Predicted latency against targets."""

from typing import Any

import numpy as np
import pytest

from routing.core.table import Floats
from routing.scorers.latency import LatencyScorer
from tests.routing.contexts import StatedTerms, make_context

NAN = np.nan


def scores_of(ttft: list[float], tpot: list[float], scorer: LatencyScorer, **state: Any) -> Floats:
    context = make_context(len(ttft), terms=StatedTerms(ttft, tpot), **state)
    return scorer.score(context)


def test_least_prefers_what_is_closest_to_the_target() -> None:
    scores = scores_of([1.0, 2.0], [0.01, 0.01], LatencyScorer(), slo_ttft_seconds=3.0,
                       slo_tpot_seconds=0.1)  # fmt: skip

    assert scores.tolist() == [0.0, 1.0]


def test_most_prefers_the_largest_headroom() -> None:
    scorer = LatencyScorer(headroom_selection_strategy="most")

    scores = scores_of([1.0, 2.0], [0.01, 0.01], scorer, slo_ttft_seconds=3.0,
                       slo_tpot_seconds=0.1)  # fmt: skip

    assert scores.tolist() == [1.0, 0.0]


def test_what_misses_a_target_scores_0_beside_what_meets_them() -> None:
    scores = scores_of([1.0, 9.0], [0.01, 0.01], LatencyScorer(), slo_ttft_seconds=3.0,
                       slo_tpot_seconds=0.1)  # fmt: skip

    assert scores.tolist() == [1.0, 0.0]


def test_without_targets_the_lowest_predicted_latency_wins() -> None:
    scores = scores_of([3.0, 1.0, 2.0], [0.02] * 3, LatencyScorer(), requests=[1, 1, 1])

    np.testing.assert_allclose(scores, [0, 1, 0.5])


def test_when_all_miss_only_idle_endpoints_are_scored() -> None:
    scores = scores_of([1.0, 5.0], [0.02, 0.02], LatencyScorer(), requests=[3, 0])

    assert scores.tolist() == [0.0, 1.0]


def test_missing_only_the_time_per_token_is_the_least_bad() -> None:
    scores = scores_of([1.0, 5.0], [0.5, 0.01], LatencyScorer(), requests=[1, 1],
                       slo_ttft_seconds=2.0, slo_tpot_seconds=0.1)  # fmt: skip

    assert scores.tolist() == [1.0, 0.0]


@pytest.mark.lesson("W25")
def test_an_endpoint_without_a_prediction_is_unknown_among_known_ones() -> None:
    scores = scores_of([1.0, NAN], [0.02, NAN], LatencyScorer(), requests=[1, 1])

    np.testing.assert_allclose(scores, [1.0, NAN])


@pytest.mark.lesson("W25")
def test_without_any_prediction_memory_queue_and_prefix_decide() -> None:
    scorer = LatencyScorer(composite_queue_weight=2.0)

    scores = scores_of([NAN, NAN], [NAN, NAN], scorer, kv_usage=[0.5, 0.5], waiting=[0, 4],
                       shares=[0.0, 1.0])  # fmt: skip

    np.testing.assert_allclose(scores, [2.5 / 4, 1.5 / 4])
