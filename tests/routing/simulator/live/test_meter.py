"""A window that moves along: what is in it, what has left it, and what nobody knows."""

import pytest

from routing.simulator.live.meter import Meter, loads_of
from routing.simulator.requests import Arrival
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation
from tests.routing.simulator.small import MI325X, Listed, arrival, fleet_of, member

WINDOW = 10.0


def measured(*arrivals: Arrival) -> tuple[Simulation, Meter]:
    fleet = fleet_of(member(MI325X, 2))
    scenario = Scenario(
        document=fleet.document,
        profiles=fleet.profiles,
        workload=Listed(*arrivals),
    )
    meter = Meter(scenario, window_seconds=WINDOW)
    return Simulation(scenario, seed=1, ended=meter.ended), meter


def test_nothing_is_known_before_anything_came() -> None:
    run, meter = measured(arrival("late", at=50.0))
    run.advance(5.0)

    reading = meter.read(run)

    assert reading.ttft_p50 is None
    assert reading.prefix_hit_rate is None
    assert reading.cost_per_million_output is None
    assert (reading.running, reading.waiting) == (0, 0)


def test_tokens_of_answers_count_while_they_are_in_the_window() -> None:
    run, meter = measured(arrival("one", output=100), arrival("late", at=60.0))
    run.advance(9.0)
    inside = meter.read(run)
    run.advance(40.0)
    outside = meter.read(run)

    assert inside.output_tokens_per_s == pytest.approx(100 / 9.0)
    assert inside.goodput_rps == pytest.approx(1 / 9.0)
    assert inside.prefix_hit_rate == 0.0
    assert outside.output_tokens_per_s == 0.0
    assert outside.ttft_p50 is None
    assert (meter.answered, meter.failed) == (1, 0)


def test_a_first_token_counts_while_the_answer_goes_on() -> None:
    run, meter = measured(arrival("long", output=5000))
    run.advance(2.0)

    reading = meter.read(run)

    assert reading.ttft_p50 is not None
    assert reading.ttft_p50 < 2.0
    assert reading.output_tokens_per_s == 0.0
    assert reading.running == sum(load.running for load in loads_of(run)) == 1


def test_a_first_token_counts_once() -> None:
    run, meter = measured(arrival("long", output=5000), arrival("other", at=3.0, output=5000))
    run.advance(2.0)
    first = meter.read(run)
    run.advance(4.0)
    meter.read(run)
    run.advance(12.5)

    # The first request's token has left the window, the second's has not.
    last = meter.read(run)

    assert first.ttft_p50 is not None
    assert last.ttft_p50 == last.ttft_p90
