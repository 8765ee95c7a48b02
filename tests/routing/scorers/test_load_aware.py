"""An empty queue gets a half, a long one nothing."""

from typing import Any

import numpy as np
import pytest

from routing.scorers.load_aware import LoadAwareScorer
from tests.routing.contexts import make_context

NAN = np.nan


@pytest.mark.parametrize(
    ("scorer", "state", "expected"),
    [
        pytest.param(LoadAwareScorer(), {"waiting": [0, 64, 500]}, [0.5, 0.25, 0], id="default"),
        pytest.param(
            LoadAwareScorer(threshold=10),
            {"waiting": [0, 5, NAN]},
            [0.5, 0.25, NAN],
            id="threshold",
        ),
    ],
)
def test_score(scorer: LoadAwareScorer, state: dict[str, Any], expected: list[float]) -> None:
    scores = scorer.score(make_context(3, **state))

    np.testing.assert_allclose(scores, expected)
