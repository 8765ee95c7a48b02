"""A rate may change while a workload runs."""

import itertools

import numpy as np
import pytest

from routing.simulator.workloads.live import Live
from tests.routing.simulator.workloads.draws import small


def test_a_new_rate_holds_from_the_next_arrival_on() -> None:
    live = Live(small(), rate_qps=10)
    arrivals = live.arrivals(0, np.random.default_rng(1))
    slow = list(itertools.islice(arrivals, 1000))

    live.rate_qps = 100
    fast = list(itertools.islice(arrivals, 1000))

    assert 8 < 1000 / slow[-1].at < 12
    assert 80 < 1000 / (fast[-1].at - slow[-1].at) < 120


def test_two_runs_of_one_seed_get_the_same_requests() -> None:
    live = Live(small(), rate_qps=10)
    one, other = (live.arrivals(0, np.random.default_rng(3)) for _ in range(2))
    before = list(itertools.islice(one, 50)), list(itertools.islice(other, 50))

    live.rate_qps = 33
    after = list(itertools.islice(one, 50)), list(itertools.islice(other, 50))

    assert before[0] == before[1]
    assert after[0] == after[1]


@pytest.mark.parametrize("rate", [0, -1, 1e9, float("nan")])
def test_an_impossible_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        Live(small(), rate_qps=rate)


def test_its_only_stage_has_no_end() -> None:
    (stage,) = Live(small(), rate_qps=5).stages

    assert stage.seconds is None
