"""Recorded requests at their times, or faster."""

from typing import Any

from routing.simulator.requests import Arrival, prompt_of
from routing.simulator.workloads.trace import Trace
from tests.routing.simulator.workloads.draws import drawn


def _trace(**changes: Any) -> Trace:
    requests = tuple(
        Arrival(at=float(at), prompt=prompt_of(((at, 100 * (at + 1)),)), output_tokens=10 + at)
        for at in range(4)
    )
    return Trace(id="t", requests=requests, block_tokens=64, **changes)


def test_a_speed_brings_requests_closer_together() -> None:
    assert [arrival.at for arrival in drawn(_trace())] == [0, 1, 2, 3]
    assert [arrival.at for arrival in drawn(_trace(speed=4.0))] == [0, 0.25, 0.5, 0.75]


def test_its_stage_has_no_rate_and_the_length_of_the_recording() -> None:
    (stage,) = _trace(speed=2.0).stages

    assert (stage.name, stage.rate_qps, stage.seconds) == ("speed 2", None, 1.5)


def test_the_longest_request_counts_prompt_and_answer() -> None:
    assert _trace().longest_tokens == 413
