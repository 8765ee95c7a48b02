"""Uncached tokens in flight, this prompt's on top."""

import numpy as np

from routing.scorers.token_load import TokenLoadScorer
from tests.routing.contexts import make_context


def test_the_prompt_itself_counts_where_it_is_not_cached() -> None:
    context = make_context(3, in_flight=[0, 0, 1000], shares=[0.0, 1.0, 1.0])
    scorer = TokenLoadScorer(queue_threshold_tokens=2 * context.prompt_tokens)

    scores = scorer.score(context)

    expected = [0.5, 1.0, 1 - 1000 / (2 * context.prompt_tokens)]
    np.testing.assert_allclose(scores, expected)


def test_over_the_threshold_is_0() -> None:
    scores = TokenLoadScorer().score(make_context(1, in_flight=[10**9]))

    np.testing.assert_allclose(scores, [0])
