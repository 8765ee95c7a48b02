"""Rules that know no cache, as orders of rows."""

from collections import Counter

import pytest

from routing.pool.policies import simple
from tests.routing.contexts import make_context

MAKERS = {
    "random": simple.make_random,
    "round-robin": simple.make_round_robin,
    "least-requests": simple.make_least_requests,
    "power-of-two": simple.make_power_of_two,
}
ROWS = [0, 1, 3]


@pytest.mark.parametrize("name", MAKERS)
def test_every_order_has_each_row_once(name: str) -> None:
    policy = MAKERS[name]()

    orders = [policy.choose(make_context(4, rows=ROWS)).rows for _ in range(20)]

    assert all(sorted(order) == ROWS for order in orders)


@pytest.mark.lesson("W21")
@pytest.mark.parametrize("name", MAKERS)
def test_rows_that_are_equal_come_first_equally_often(name: str) -> None:
    policy, context = MAKERS[name](), make_context(4, rows=ROWS, requests=[2] * 4)

    first = Counter(policy.choose(context).rows[0] for _ in range(900))

    assert min(first.values()) > 240


def test_round_robin_counts_turns_apart_for_the_two_ends() -> None:
    policy, context = simple.make_round_robin(), make_context(4, rows=ROWS)
    context.prefills_of = lambda row: ROWS

    rankings = [policy.choose(context) for _ in range(4)]

    assert [ranking.rows[0] for ranking in rankings] == [0, 1, 3, 0]
    assert [ranking.prefill for ranking in rankings] == [0, 1, 3, 0]


def test_least_requests_orders_by_load() -> None:
    context = make_context(4, rows=ROWS, requests=[5, 3, 0, 4])

    assert simple.make_least_requests().choose(context).rows == [1, 3, 0]


def test_of_two_drawn_the_one_with_fewer_requests_wins() -> None:
    policy, context = simple.make_power_of_two(), make_context(4, requests=[9, 0, 1, 2])

    first = Counter(policy.choose(context).rows[0] for _ in range(600))

    # The busiest loses against anybody; the idlest wins each of the half of the draws it is in.
    assert first[0] == 0
    assert first[1] / 600 == pytest.approx(0.5, abs=0.07)


def test_one_row_is_drawn_alone() -> None:
    assert simple.make_power_of_two().choose(make_context(4, rows=[2])).rows == [2]
