"""Adapters: in use, loaded and idle, room, waiting, full, unknown."""

import numpy as np
import pytest

from routing.core.adapters import Adapters
from routing.scorers.lora_affinity import LoraAffinityScorer
from tests.routing.contexts import make_context
from tests.routing.pool.builders import make_request

OURS, A, B = "support", "legal", "code"
NAN = np.nan


def names(*found: str) -> frozenset[str]:
    return frozenset(found)


def score_of(adapters: Adapters, adapter: str | None = OURS) -> float:
    context = make_context(1, request=make_request(adapter=adapter))
    context.table.instances[0].adapters = adapters
    return float(LoraAffinityScorer().score(context)[0])


@pytest.mark.parametrize(
    ("adapters", "expected"),
    [
        pytest.param(Adapters(running=names(OURS, A), most=2), 1.0, id="running"),
        pytest.param(Adapters(running=names(A), most=2), 0.8, id="room-for-one-more"),
        pytest.param(Adapters(running=names(A), waiting=names(OURS), most=1), 0.6, id="waiting"),
        pytest.param(Adapters(running=names(A), waiting=names(B), most=2), 0.0, id="full"),
        pytest.param(Adapters(most=4), 0.8, id="empty"),
    ],
)
def test_score(adapters: Adapters, expected: float) -> None:
    assert score_of(adapters) == expected


@pytest.mark.lesson("S05")
def test_an_adapter_that_is_loaded_and_idle_counts_as_at_hand() -> None:
    adapters = Adapters(running=names(A), loaded=names(A, OURS), most=1)

    assert score_of(adapters) == 1.0


@pytest.mark.lesson("S06")
def test_an_adapter_that_is_nowhere_goes_where_there_is_room() -> None:
    context = make_context(2, request=make_request(adapter=OURS))
    full, free = context.table.instances
    full.adapters = Adapters(running=names(A, B), most=2)
    free.adapters = Adapters(running=names(A), most=2)

    scores = LoraAffinityScorer().score(context)

    assert scores.tolist() == [0.0, 0.8]


@pytest.mark.lesson("W25")
def test_where_the_engine_says_nothing_the_score_is_unknown() -> None:
    assert np.isnan(score_of(Adapters()))


def test_a_request_for_the_base_model_needs_no_room() -> None:
    assert score_of(Adapters(running=names(A), most=1), adapter=None) == 1.0
