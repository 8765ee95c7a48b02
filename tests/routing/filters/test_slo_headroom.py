"""Two tiers by predicted headroom."""

import numpy as np

from routing.filters.slo_headroom import SloHeadroomTierFilter
from tests.routing.contexts import StatedTerms, make_context

TTFT, TPOT = [1.0, 5.0, np.nan], [0.02, 0.02, np.nan]


def kept(epsilon: float, ttft_target: float) -> list[bool]:
    context = make_context(
        3, terms=StatedTerms(TTFT, TPOT), slo_ttft_seconds=ttft_target, slo_tpot_seconds=0.1
    )
    return SloHeadroomTierFilter(epsilon_explore_neg=epsilon).keep(context).tolist()


def test_those_that_meet_the_targets_stay() -> None:
    assert kept(0.0, 2.0) == [True, False, False]


def test_exploring_keeps_the_others_and_the_unknown() -> None:
    assert kept(1.0, 2.0) == [False, True, True]


def test_when_nobody_meets_them_all_stay() -> None:
    assert kept(0.0, 0.5) == [True, True, True]
