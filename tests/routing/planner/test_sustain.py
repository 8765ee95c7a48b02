"""Past its limit a pool is judged at the rate that it keeps, and a lead is no accident of rates."""

import math

import pytest

from routing.planner.accuracy import RATE_RESOLUTION
from routing.planner.engines import Engine, engine_of
from routing.planner.placement import Share
from routing.planner.sustain import GOOD, MOST_TRIES, Sustained, leads, settle
from routing.planner.trial import Cancelled, Trial
from tests.routing.planner.fleets import Target, demand, group
from tests.routing.planner.test_trial import trial

BAR = 0.1


def begun(asked: Trial, requests: int = 300) -> Sustained:
    found = Sustained(asked, seed=1, requests=requests)
    found.begin()
    return found


def engines_of(speed: float, rate: float) -> Trial:
    """Two engines of a speed."""
    engine = engine_of(group(speed=speed), demand(), 1)
    assert isinstance(engine, Engine)
    placement = (Share(group="amd-mi325x", width=1, both=2),)
    return Trial(placement, {"amd-mi325x": engine}, demand(rate))


def test_past_its_limit_a_pool_is_judged_at_the_rate_that_it_keeps() -> None:
    found = begun(trial(1, 60.0))
    assert found.best.rate_rps < 60.0
    assert found.best.good_share >= GOOD

    found.narrow()
    found.narrow()

    assert found.best.goodput_at_most_rps is not None
    assert 0.9 * found.best.rate_rps <= found.best.goodput_rps <= found.best.goodput_at_most_rps
    assert found.best.goodput_at_most_rps < 60.0


def test_a_rate_that_is_kept_takes_one_simulation() -> None:
    found = begun(trial(2, 2.0), requests=300)

    assert found.tries == 1
    assert found.best.rate_rps == 2.0
    assert found.best.good_share >= GOOD
    assert found.spread == 1.0
    assert found.best.goodput_at_most_rps == found.best.goodput_rps


@pytest.mark.parametrize("offered", [42.0, 48.0])
def test_five_percent_faster_engines_do_not_lead_by_ten_whatever_the_rates(offered: float) -> None:
    # Of rates a ninth apart, these two had the faster engines keep one more: 12 % ahead.
    faster, slower = begun(engines_of(1.05, offered)), begun(engines_of(1.0, offered))

    settle(faster, slower, least_gain=BAR, tries=8)

    assert not leads(faster.best, slower.best, least_gain=BAR)


@pytest.mark.parametrize("offered", [42.0, 48.0])
def test_engines_faster_by_three_tenths_lead(offered: float) -> None:
    faster, slower = begun(engines_of(1.3, offered)), begun(engines_of(1.0, offered))

    settle(faster, slower, least_gain=BAR, tries=8)

    assert leads(faster.best, slower.best, least_gain=BAR)


def test_a_comparison_ends_when_it_is_sure_or_at_the_resolution_or_at_its_bound() -> None:
    kept, same = begun(engines_of(1.0, 5.0)), begun(engines_of(1.0, 5.0))
    assert settle(kept, same, least_gain=BAR, tries=8) == 0

    first, second = begun(engines_of(1.0, 42.0)), begun(engines_of(1.0, 42.0))
    assert settle(first, second, least_gain=BAR, tries=1) == 1
    # Nothing is ever sure of a lead of nothing between equals.
    used = settle(first, second, least_gain=0.0, tries=20)
    assert used < 20
    assert max(first.spread, second.spread) <= 1 + RATE_RESOLUTION


def test_narrowing_never_loses_what_was_found() -> None:
    found = begun(engines_of(1.0, 42.0))
    goodput, spread, most = found.best.goodput_rps, found.spread, found.best.goodput_at_most_rps
    assert most is not None

    for _again in range(3):
        found.narrow()

        assert found.best.goodput_rps >= goodput
        assert found.spread < spread
        goodput, spread = found.best.goodput_rps, found.spread


def test_no_rate_is_said_to_give_more_good_requests_than_it_has() -> None:
    # The best is at a rate that is not kept: nearly nine in ten, of more.
    found = begun(engines_of(1.05, 48.0))

    assert found.best.good_share < GOOD
    assert found.best.goodput_at_most_rps == found.best.rate_rps


def test_what_keeps_no_rate_may_keep_any_below_those_that_were_tried() -> None:
    never = begun(trial(1, 8.0, Target(tpot_seconds=0.001)))

    assert never.tries == MOST_TRIES
    assert never.spread == math.inf
    assert never.best.goodput_rps == 0
    assert never.best.goodput_at_most_rps is not None
    assert 0 < never.best.goodput_at_most_rps < 8.0
    # It leads nobody, and whoever keeps more than it was tried at leads it.
    assert not leads(never.best, never.best, least_gain=BAR)
    assert leads(begun(trial(2, 8.0)).best, never.best, least_gain=BAR)


def test_the_end_can_be_asked_for() -> None:
    asked = Sustained(trial(1, 2.0), seed=1, requests=300, should_stop=lambda: True)

    with pytest.raises(Cancelled):
        asked.begin()
