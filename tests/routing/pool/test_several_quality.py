"""Four routers that gossip choose about as well as one, also when packets get lost."""

from typing import Any

import numpy as np
import pytest

from tests.routing.pool.simulated import UNIFIED_FLEET, Load, Outcome, outcome_of

LOAD = Load(question_tokens=1500, output_tokens=200, stages=((40, 6), (40, 8)))


def outcome(routers: int, **surroundings: Any) -> Outcome:
    return outcome_of("consort", LOAD, fleet=UNIFIED_FLEET, routers=routers, **surroundings)


@pytest.mark.lesson("W15")
def test_with_a_fifth_of_the_packets_lost_four_routers_are_about_as_good_as_one() -> None:
    one, four, strangers = (
        outcome(1),
        outcome(4, gossip_loss=0.2),
        outcome(4, do_routers_gossip=False),
    )

    assert four.in_time >= 0.97 * one.in_time
    assert np.mean(four.e2e) <= 1.1 * np.mean(one.e2e)
    assert four.hit_rate >= 0.95 * one.hit_rate
    assert strangers.hit_rate <= 0.9 * four.hit_rate
