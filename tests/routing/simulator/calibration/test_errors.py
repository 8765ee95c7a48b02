"""Errors are compared as ratios, and none of them decides alone."""

import math

import msgspec
import pytest

from routing.simulator.calibration.errors import MOST, Error, Quantity, errors_of, loss_of
from routing.simulator.published.running import scenario_of
from routing.simulator.published.tables import table
from routing.simulator.report.stage import StageReport, report_of
from routing.simulator.requests import Arrival, Course, Stage, prompt_of


def _error(simulated: float, quantity: Quantity = "tpot_mean_s") -> Error:
    return Error(rate_qps=3.0, quantity=quantity, published=1.0, simulated=simulated)


def _report() -> StageReport:
    """One request of 101 tokens: TTFT 0.5 s, 20 ms a token, 2.5 s in all."""
    arrival = Arrival(at=0.0, prompt=prompt_of((("x", 64),)), output_tokens=101)
    course = Course(0, 0, arrival, 0.0)
    course.first_token_at, course.ended_at = 0.5, 2.5
    course.outcome, course.output_tokens = "ok", 101
    stage = Stage(name="3 qps", rate_qps=3.0, seconds=1.0)
    return report_of(stage, [course], scenario_of(table("guide-rate10")))


ROW = msgspec.structs.replace(
    table("guide-rate10").rows[0], rate_qps=3.0, tpot_mean_s=0.01, requests_per_s=0.4
)


def test_twice_as_much_is_as_wrong_as_half() -> None:
    assert loss_of([_error(2.0)]) == pytest.approx(loss_of([_error(0.5)]))
    assert _error(2.0).log_ratio == pytest.approx(math.log(2.0))


def test_one_row_counts_for_a_factor_of_e_at_most() -> None:
    assert loss_of([_error(1000.0)]) == MOST


def test_first_tokens_count_less_than_throughput() -> None:
    heavy = loss_of([_error(2.0, "requests_per_s"), _error(1.0, "ttft_p50_s")])
    light = loss_of([_error(1.0, "requests_per_s"), _error(2.0, "ttft_p50_s")])

    assert heavy == pytest.approx(2 * light)


def test_nothing_to_compare_is_no_fit() -> None:
    assert loss_of([]) == math.inf


def test_only_what_both_sides_know_is_compared() -> None:
    found = list(errors_of([ROW], [_report()]))

    assert {error.quantity: error.simulated for error in found} == {
        "requests_per_s": pytest.approx(0.4),
        "tpot_mean_s": pytest.approx(0.02),
    }
