"""Running requests, min-max over the candidates."""

from typing import Any

import numpy as np
import pytest

from routing.scorers.running import RunningRequestsSizeScorer
from tests.routing.contexts import make_context

NAN = np.nan


@pytest.mark.parametrize(
    ("scorer", "state", "expected"),
    [
        pytest.param(
            RunningRequestsSizeScorer(), {"running": [20, 10, 0]}, [0, 0.5, 1], id="linear"
        ),
        pytest.param(
            RunningRequestsSizeScorer(), {"running": [0, NAN, 0]}, [1, NAN, 1], id="equal"
        ),
    ],
)
def test_score(
    scorer: RunningRequestsSizeScorer, state: dict[str, Any], expected: list[float]
) -> None:
    scores = scorer.score(make_context(3, **state))

    np.testing.assert_allclose(scores, expected)
