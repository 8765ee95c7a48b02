"""Nothing is shared, and lengths are around their means."""

from typing import Any

import numpy as np

from routing.simulator.workloads.random_lengths import RandomLengths
from tests.routing.simulator.workloads.draws import STAGES, drawn


def _lengths(**changes: Any) -> RandomLengths:
    return RandomLengths(id="r", stages=STAGES, input_tokens=1000, output_tokens=200, **changes)


def test_no_two_prompts_share_a_block() -> None:
    arrivals = drawn(_lengths()) + drawn(_lengths(), 1)

    keys = [key for arrival in arrivals for key in arrival.prompt.keys]

    assert len(set(keys)) == len(keys)


def test_without_spread_all_are_alike() -> None:
    arrivals = drawn(_lengths())

    assert {arrival.prompt.tokens for arrival in arrivals} == {1000}
    assert {arrival.output_tokens for arrival in arrivals} == {200}
    assert _lengths().longest_tokens == 1200


def test_lengths_vary_around_the_mean_and_are_cut() -> None:
    workload = _lengths(input_spread=0.5, most_input_tokens=1500)

    tokens = [arrival.prompt.tokens for arrival in drawn(workload)]

    assert 800 < np.mean(tokens) < 1100
    assert max(tokens) == 1500
    assert workload.longest_tokens == 1700
