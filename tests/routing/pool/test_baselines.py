"""The policies without a price, as orders of rows."""

from collections import Counter

import numpy as np
import pytest

from routing.core.table import EndpointTable, Instance
from routing.pool.baselines import Baselines
from tests.routing.pool.builders import endpoint_dict, make_document

DOCUMENT = make_document(*(endpoint_dict(name) for name in "abcd"))
ROWS = [0, 1, 3]


def make_table(requests: list[int]) -> EndpointTable:
    instances = [Instance(spec, row, row) for row, spec in enumerate(DOCUMENT.endpoints)]
    table = EndpointTable(DOCUMENT, instances, now=0.0)
    table.requests[:] = requests
    return table


@pytest.mark.parametrize("policy", ["random", "round-robin", "least-requests"])
def test_every_order_has_each_row_once(policy: str) -> None:
    baselines = Baselines(np.random.default_rng(1))

    orders = [
        baselines.order(policy, ROWS, make_table([0] * 4), choice="answer") for _ in range(20)
    ]

    assert all(sorted(order) == ROWS for order in orders)


@pytest.mark.parametrize("policy", ["random", "least-requests"])
def test_rows_that_are_equal_come_first_equally_often(policy: str) -> None:
    baselines = Baselines(np.random.default_rng(1))

    first = Counter(
        baselines.order(policy, ROWS, make_table([2] * 4), choice="answer")[0] for _ in range(900)
    )

    assert min(first.values()) > 240


def test_round_robin_turns_are_counted_apart_for_the_two_choices() -> None:
    baselines, table = Baselines(np.random.default_rng(1)), make_table([0] * 4)

    answers = [baselines.order("round-robin", ROWS, table, choice="answer")[0] for _ in range(2)]
    prefills = [baselines.order("round-robin", ROWS, table, choice="prefill")[0] for _ in range(2)]

    assert answers == prefills == [0, 1]


def test_least_requests_orders_by_load() -> None:
    baselines = Baselines(np.random.default_rng(1))

    order = baselines.order("least-requests", ROWS, make_table([5, 3, 0, 4]), choice="answer")

    assert order == [1, 3, 0]
