"""Free share of KV memory."""

from typing import Any

import numpy as np
import pytest

from routing.scorers.kv_usage import KvCacheUtilizationScorer
from tests.routing.contexts import make_context

NAN = np.nan


@pytest.mark.parametrize(
    ("scorer", "state", "expected"),
    [
        pytest.param(
            KvCacheUtilizationScorer(),
            {"kv_usage": [0.25, 1.0, NAN]},
            [0.75, 0, NAN],
            id="free-share",
        ),
    ],
)
def test_score(
    scorer: KvCacheUtilizationScorer, state: dict[str, Any], expected: list[float]
) -> None:
    scores = scorer.score(make_context(3, **state))

    np.testing.assert_allclose(scores, expected)
