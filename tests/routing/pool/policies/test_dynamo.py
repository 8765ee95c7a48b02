"""Dynamo's cost in blocks, its lifetime of entries and its conditional disaggregation."""

import numpy as np
import pytest

from routing.core.scoring import Context
from routing.pool.policies.dynamo import Dynamo
from tests.routing.contexts import make_context
from tests.routing.pool.builders import make_request
from tests.routing.pool.policies.test_sglang_cache_aware import lease_of

LONG = "hello " * 2000
"""About 3,000 tokens."""


def after_a_request(context: Context, row: int, *, now: float = 0.0) -> Dynamo:
    policy = Dynamo()
    policy.began(lease_of(context.table, row, context.request), context.table, now=now)
    return policy


def test_prefill_in_flight_and_blocks_in_decode_both_cost() -> None:
    state = {"prefill_tokens": [1600, 0, 0], "private_tokens": [0, 3200, 1000]}

    ranking = Dynamo().choose(make_context(3, **state))

    assert ranking.rows == [2, 0, 1]


def test_a_cached_block_is_worth_a_block_of_decode() -> None:
    context = make_context(2, request=make_request(LONG), private_tokens=[2000, 0])
    policy = after_a_request(context, 0, now=context.now)

    assert policy.choose(context).rows[0] == 0
    context.table.private_tokens[0] = 3200
    assert policy.choose(context).rows[0] == 1


def test_own_decisions_count_for_120_seconds() -> None:
    context = make_context(2, request=make_request(LONG), private_tokens=[100, 0], now=10.0)
    policy = after_a_request(context, 0, now=10.0)
    assert policy.choose(context).rows[0] == 0

    context.now = 131.5

    assert policy.choose(context).rows[0] == 1


def test_where_events_tell_they_go_before_own_decisions() -> None:
    context = make_context(2, request=make_request(LONG), private_tokens=[100, 0])
    policy = after_a_request(context, 0, now=context.now)
    context.indexed_tokens = np.zeros(2)
    context.is_exact = np.array([True, False])

    assert policy.choose(context).rows[0] == 1


@pytest.mark.parametrize(
    ("words", "cached", "is_paired"),
    [
        pytest.param(2000, 0, True, id="long-and-cold"),
        pytest.param(1000, 0, False, id="short"),
        pytest.param(2000, 1200, False, id="less-than-2048-missing"),
        pytest.param(9000, 10_000, False, id="more-than-0.7-cached"),
        pytest.param(9000, 5_000, True, id="long-and-partly-cached"),
    ],
)
def test_conditional_disaggregation(words: int, cached: int, *, is_paired: bool) -> None:
    context = make_context(
        3,
        rows=[1, 2],
        roles=["prefill", "decode", "decode"],
        request=make_request("hello " * words),
    )
    context.prefills_of = lambda row: [0]
    context.indexed_tokens = np.full(3, float(cached))
    context.is_exact = np.ones(3, dtype=np.bool_)

    assert (Dynamo().choose(context).prefill == 0) == is_paired


def test_in_a_pair_the_destination_is_the_one_with_the_least_in_decode() -> None:
    state = {"roles": ["prefill", "prefill", "decode", "decode"], "rows": [2, 3],
             "private_tokens": [0, 0, 900, 100], "prefill_tokens": [500, 0, 0, 9000]}  # fmt: skip
    context = make_context(4, request=make_request(LONG), **state)
    context.prefills_of = lambda row: [0, 1]

    ranking = Dynamo().choose(context)

    assert (ranking.rows, ranking.prefill) == ([3, 2], 1)
