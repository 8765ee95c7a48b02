"""Waiting requests, min-max over the candidates."""

from typing import Any

import numpy as np
import pytest

from routing.scorers.queue import QueueScorer
from tests.routing.contexts import make_context

NAN = np.nan


@pytest.mark.parametrize(
    ("scorer", "state", "expected"),
    [
        pytest.param(QueueScorer(), {"waiting": [10, 5, 0]}, [0, 0.5, 1], id="linear"),
        pytest.param(QueueScorer(), {"waiting": [3, 3, 3]}, [1, 1, 1], id="equal"),
        pytest.param(
            QueueScorer(), {"waiting": [4, NAN, 0]}, [0, NAN, 1], id="unknown-stays-unknown"
        ),
    ],
)
def test_score(scorer: QueueScorer, state: dict[str, Any], expected: list[float]) -> None:
    scores = scorer.score(make_context(3, **state))

    np.testing.assert_allclose(scores, expected)
