"""Requests in flight from this router."""

from typing import Any

import numpy as np
import pytest

from routing.scorers.active_request import ActiveRequestScorer
from tests.routing.contexts import make_context


@pytest.mark.parametrize(
    ("scorer", "state", "expected"),
    [
        pytest.param(ActiveRequestScorer(), {"requests": [0, 5, 10]}, [1, 0.5, 0], id="linear"),
        pytest.param(ActiveRequestScorer(), {"requests": [6, 6, 6]}, [1, 1, 1], id="equally-busy"),
        pytest.param(
            ActiveRequestScorer(idle_threshold=2, max_busy_score=0.5),
            {"requests": [2, 4, 8]},
            [1, 0.25, 0],
            id="a-gap-between-idle-and-busy",
        ),
    ],
)
def test_score(scorer: ActiveRequestScorer, state: dict[str, Any], expected: list[float]) -> None:
    scores = scorer.score(make_context(3, **state))

    np.testing.assert_allclose(scores, expected)
