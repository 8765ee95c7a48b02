"""Staying with the cache, and the gate that opens when it is crowded there."""

from typing import Any

import pytest

from routing.filters.prefix_affinity import PrefixCacheAffinityFilter
from tests.routing.contexts import StatedTerms, make_context

SHARES = [0.9, 0.5, 0.0]
GATE_TOKENS = 15_928 * 18


@pytest.mark.parametrize(
    ("parameters", "state", "expected"),
    [
        pytest.param({}, {"shares": SHARES}, [True, False, False], id="stays"),
        pytest.param({}, {"shares": [0.79] * 3}, [True] * 3, id="no-long-match-keeps-all"),
        pytest.param({}, {"shares": [0.8] * 3}, [True] * 3, id="all-hold-it"),
        pytest.param(
            {},
            {"shares": SHARES, "in_flight": [GATE_TOKENS + 1, 5, 0]},
            [True] * 3,
            id="crowded-opens",
        ),
        pytest.param(
            {},
            {"shares": SHARES, "in_flight": [GATE_TOKENS, 5, 0]},
            [True, False, False],
            id="at-the-gate-stays",
        ),
        pytest.param(
            {"max_ttft_penalty_ms": 0.0},
            {"shares": SHARES, "in_flight": [10**9, 0, 0]},
            [True, False, False],
            id="penalty-0-always-stays",
        ),
        pytest.param(
            {"ttft_source": "latencyPredictor"},
            {"shares": SHARES, "terms": StatedTerms([20.0, 1.0, 1.0], [0.1] * 3)},
            [True] * 3,
            id="predicted-times-open",
        ),
        pytest.param(
            {"ttft_source": "latencyPredictor"},
            {"shares": SHARES},
            [True, False, False],
            id="unknown-times-stay",
        ),
        pytest.param(
            {"exploration_probability": 1.0}, {"shares": SHARES}, [True] * 3, id="explores"
        ),
        pytest.param(
            {"affinity_threshold": 0.4}, {"shares": SHARES}, [True, True, False], id="threshold"
        ),
    ],
)
def test_keep(parameters: dict[str, Any], state: dict[str, Any], expected: list[bool]) -> None:
    kept = PrefixCacheAffinityFilter(**parameters).keep(make_context(3, **state))

    assert kept.tolist() == expected
