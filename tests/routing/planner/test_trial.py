"""A placement in the simulator: scaled down and back, and judged by its targets."""

import pytest

from routing.planner.engines import Engine, engine_of
from routing.planner.placement import Share
from routing.planner.trial import MOST_ENGINES, Trial, simulate
from tests.routing.planner.fleets import Target, demand, group


def trial(count: int, rate: float, target: Target | None = None) -> Trial:
    engine = engine_of(group(), demand(), 1)
    assert isinstance(engine, Engine)
    placement = (Share(group="amd-mi325x", width=1, both=count),)
    asked = demand(rate, target=target or Target())
    return Trial(placement, {"amd-mi325x": engine}, asked)


def test_a_light_load_is_answered_within_the_targets() -> None:
    found = simulate(trial(2, 2.0), rate=2.0, seed=1, requests=400)

    assert found.good_share == 1.0
    assert found.goodput_rps == 2.0
    assert found.scale == 1.0
    assert 0 < found.utilisation < 1


def test_a_large_pool_is_simulated_small_and_scaled_back() -> None:
    found = simulate(trial(4 * MOST_ENGINES, 60.0), rate=60.0, seed=1, requests=100_000)

    assert found.scale == pytest.approx(0.25)
    assert found.rate_rps == 60.0
    assert found.goodput_rps == pytest.approx(60.0, rel=0.05)


def test_targets_that_nothing_keeps_leave_no_goodput() -> None:
    found = simulate(trial(1, 1.0, Target(tpot_seconds=0.001)), rate=1.0, seed=1, requests=300)

    assert found.goodput_rps == 0
