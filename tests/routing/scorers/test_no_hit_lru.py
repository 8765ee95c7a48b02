"""Cold prompts go round by least recent use; cached ones do not care."""

import numpy as np
import pytest

from routing.scorers.no_hit_lru import NoHitLruScorer
from tests.routing.contexts import make_context


@pytest.mark.parametrize(
    ("cold", "expected"),
    [
        pytest.param([-1, -1, -1], [1, 1, 1], id="nobody-was-used"),
        pytest.param([0, 1, 2], [1, 0.5, 0], id="the-latest-comes-last"),
        pytest.param([-1, 1, 0], [1, 0, 0.5], id="never-used-comes-first"),
        pytest.param([-1, -1, 3], [1, 1, 0], id="two-never-used"),
    ],
)
@pytest.mark.lesson("W13")
def test_cold_prompts(cold: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(NoHitLruScorer().score(make_context(3, cold=cold)), expected)


def test_a_prompt_that_somebody_holds_is_left_to_the_other_scorers() -> None:
    scores = NoHitLruScorer().score(make_context(3, cold=[0, 1, 2], shares=[0, 0.1, 0]))

    np.testing.assert_allclose(scores, [0.5, 0.5, 0.5])


@pytest.mark.lesson("W25")
def test_one_candidate_gets_1() -> None:
    np.testing.assert_allclose(NoHitLruScorer().score(make_context(1, cold=[3])), [1])
