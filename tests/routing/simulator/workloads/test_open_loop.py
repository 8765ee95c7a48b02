"""Requests come in order, at about the rate, and equal generators give equal ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.simulator.requests import Stage
from routing.simulator.workloads.open_loop import drawn_length, ladder, times_of
from tests.routing.simulator.workloads.draws import drawn, small


@given(rate=st.floats(0.5, 200), seconds=st.floats(0.1, 20), seed=st.integers(0, 100))
def test_times_are_in_order_and_within_the_stage(rate: float, seconds: float, seed: int) -> None:
    stage = Stage(name="s", rate_qps=rate, seconds=seconds)

    times = list(times_of(stage, np.random.default_rng(seed), "poisson", of="w"))

    assert times == sorted(times)
    assert all(0 < at < seconds for at in times)


def test_poisson_and_constant_arrivals_have_the_stated_rate() -> None:
    stage = Stage(name="s", rate_qps=50, seconds=100)

    poisson = list(times_of(stage, np.random.default_rng(1), "poisson", of="w"))
    constant = list(times_of(stage, np.random.default_rng(1), "constant", of="w"))

    # Four standard deviations of a Poisson count of 5,000.
    assert abs(len(poisson) - 5000) < 4 * 71
    assert np.allclose(np.diff(constant), 0.02)
    assert len(constant) in (4999, 5000)


@pytest.mark.parametrize("stage", [Stage(name="s"), Stage(name="s", rate_qps=0.0, seconds=5)])
def test_a_stage_without_a_rate_is_refused(stage: Stage) -> None:
    with pytest.raises(ValueError, match="Stage 's' of 'small' has no rate"):
        drawn(small(stages=(stage,)))


def test_equal_generators_give_equal_arrivals() -> None:
    assert drawn(small(), seed=7) == drawn(small(), seed=7)
    assert drawn(small(), seed=7) != drawn(small(), seed=8)


def test_a_ladder_names_its_stages_and_marks_warm_up() -> None:
    stages = ladder((5, 10), (2.5, 3), warm_up=1)

    assert [stage.name for stage in stages] == ["5 qps", "2.5 qps"]
    assert [stage.is_warm_up for stage in stages] == [True, False]


@given(mean=st.integers(1, 10_000), spread=st.floats(0, 2), seed=st.integers(0, 50))
def test_a_length_is_at_least_one(mean: int, spread: float, seed: int) -> None:
    assert drawn_length(mean, spread, np.random.default_rng(seed)) >= 1
