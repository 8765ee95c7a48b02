"""A router's delay is found again from stages that it slowed down."""

import msgspec
import pytest

from routing.simulator.calibration.fit import CalibrationError
from routing.simulator.calibration.router_fit import (
    median_seconds,
    open_at_arrival,
    router_samples,
)
from routing.simulator.published.running import scenario_of
from routing.simulator.published.tables import Table, table
from routing.simulator.report.stage import stage_reports
from routing.simulator.requests import Arrival, Course, prompt_of
from routing.simulator.scenario import Surroundings
from routing.simulator.simulation import Simulation

RATES = (10.0,)
SECONDS = 0.0004


def _slowed() -> Table:
    used = table("nxt-mi325x-granite-llmd")
    around = Surroundings(router_seconds_per_open_request=8 * SECONDS)
    run = Simulation(scenario_of(used, rates=RATES, surroundings=around), seed=1)
    run.run()
    ttft = stage_reports(run)[1].ttft
    assert ttft is not None
    rows = tuple(
        msgspec.structs.replace(row, ttft_mean_s=ttft.mean) if row.rate_qps in RATES else row
        for row in used.rows
    )
    return msgspec.structs.replace(used, rows=rows)


def test_a_known_delay_is_found_again() -> None:
    samples = router_samples((_slowed(),), rates={"nxt-mi325x-granite-llmd": RATES})

    assert [sample.endpoints for sample in samples] == [8]
    assert median_seconds(samples) == pytest.approx(SECONDS, rel=0.15)


def test_rows_that_judge_are_refused() -> None:
    with pytest.raises(CalibrationError, match="judges the simulator"):
        router_samples((table("nxt-3v-granite-llmd"),))


def test_without_samples_there_is_no_median() -> None:
    with pytest.raises(ValueError, match="No stage has enough open requests"):
        median_seconds(())


def test_open_requests_are_counted_when_others_come() -> None:
    courses = []
    for number, (sent, ended) in enumerate(((0.0, 10.0), (1.0, 2.0), (3.0, 4.0))):
        arrival = Arrival(at=sent, prompt=prompt_of((("x", 64),)), output_tokens=2)
        course = Course(number, 0, arrival, sent)
        course.ended_at = ended
        courses.append(course)

    assert open_at_arrival(courses) == pytest.approx((0 + 1 + 1) / 3)
