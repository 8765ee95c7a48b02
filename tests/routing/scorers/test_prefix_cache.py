"""Prefix scores, and that a long partial match can beat a full match of a short prompt."""

import numpy as np
import pytest

from routing.scorers.prefix_cache import PrefixCacheScorer
from tests.routing.contexts import make_context


def test_the_score_is_the_matched_share() -> None:
    scores = PrefixCacheScorer().score(make_context(3, shares=[0.0, 0.25, 1.0]))

    np.testing.assert_allclose(scores, [0, 0.25, 1])


@pytest.mark.lesson("W11")
def test_with_a_length_weight_the_tokens_saved_count() -> None:
    scorer = PrefixCacheScorer(match_length_weight=0.5, match_length_scale_tokens=8192)

    short = scorer.score(make_context(1, shares=[1.0], tokens=[128]))
    long = scorer.score(make_context(1, shares=[0.5], tokens=[16_384]))

    assert long[0] > short[0]
    np.testing.assert_allclose(long, [0.75])
