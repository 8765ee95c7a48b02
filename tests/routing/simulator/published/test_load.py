"""The load generator's order: exact numbers, the same prompts first in every stage, one pass."""

from collections import Counter

import numpy as np
import pytest

from routing.simulator.published.load import PublishedLoad
from routing.simulator.published.tables import traffic
from routing.simulator.requests import Arrival, Stage

SENT = traffic("nxt-granite-6k")


def _arrivals(rate: float, seconds: float, *, keep: float = 1.0, stage: int = 0) -> list[Arrival]:
    stages = tuple(Stage(name="x", rate_qps=rate, seconds=seconds) for _ in range(stage + 1))
    load = PublishedLoad("nxt-granite-6k", SENT, stages, keep=keep)
    return list(load.arrivals(stage, np.random.default_rng(stage)))


def test_a_stage_sends_rate_times_seconds() -> None:
    assert len(_arrivals(85, 30)) == 2550


def test_750_requests_are_one_pass_over_all_prompts() -> None:
    counts = Counter(arrival.prompt.keys for arrival in _arrivals(15, 50))

    assert len(counts) == 750
    assert set(counts.values()) == {1}


def test_every_stage_begins_with_the_same_prompts() -> None:
    first, second = _arrivals(3, 20), _arrivals(10, 20, stage=1)

    assert [one.prompt.keys for one in first] == [one.prompt.keys for one in second[:60]]


def test_prompts_of_a_group_share_their_system_prompt_and_nothing_else() -> None:
    prompts = {one.prompt.keys for one in _arrivals(15, 50)}
    block = SENT.system_tokens // 64
    groups = Counter(keys[block - 1] for keys in prompts)

    assert set(groups.values()) == {5}
    assert len({keys[block] for keys in prompts}) == 750


def test_arrivals_are_in_order_and_lengths_as_stated() -> None:
    arrivals = _arrivals(20, 10)

    assert [one.at for one in arrivals] == sorted(one.at for one in arrivals)
    assert {one.prompt.tokens for one in arrivals} == {7546}
    assert {one.output_tokens for one in arrivals} == {1000}


def test_a_part_of_the_replicas_gets_its_share() -> None:
    kept = _arrivals(85, 30, keep=0.25)

    assert len(kept) == pytest.approx(2550 / 4, rel=0.1)


def test_a_stage_without_a_rate_is_refused() -> None:
    load = PublishedLoad("x", SENT, (Stage(name="idle"),))

    with pytest.raises(ValueError, match="Stage 'idle' of 'x' has no rate"):
        next(iter(load.arrivals(0, np.random.default_rng(0))))
