"""Holdings: what a lease adds to a table is taken back exactly once."""

import hypothesis.strategies as st
from hypothesis import given, settings

from routing.core.lease import Holding
from routing.core.table import EndpointTable, Instance
from tests.routing.pool.builders import endpoint_dict, make_document

DOCUMENT = make_document(endpoint_dict("a"), endpoint_dict("b"))


def make_table() -> EndpointTable:
    instances = [Instance(spec, row, row) for row, spec in enumerate(DOCUMENT.endpoints)]
    return EndpointTable(DOCUMENT, instances, now=0.0)


def test_a_holding_counts_while_it_is_held() -> None:
    table = make_table()
    holding = Holding(table.instances[1], {"sequences": 1, "remaining_tokens": 40})

    holding.take(table, now=0.0)
    held = (table.sequences.tolist(), table.remaining_tokens.tolist())
    holding.release(table, now=1.0)
    holding.release(table, now=2.0)

    assert held == ([0, 1], [0, 40])
    assert table.sequences.tolist() == [0, 0]
    assert table.remaining_tokens.tolist() == [0, 0]


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), max_size=10))
def test_parts_given_back_early_are_not_given_back_again(parts: list[int]) -> None:
    table = make_table()
    holding = Holding(table.instances[0], {"remaining_tokens": 100})
    holding.take(table, now=0.0)

    for part in parts:
        holding.reduce(table, "remaining_tokens", part)
    left = float(table.remaining_tokens[0])
    holding.release(table, now=1.0)

    assert left == max(0, 100 - sum(parts))
    assert table.remaining_tokens[0] == 0


def test_a_holding_of_a_dead_instance_touches_nobodys_row() -> None:
    table = make_table()
    instance = table.instances[0]
    holding = Holding(instance, {"sequences": 1})
    holding.take(table, now=0.0)

    instance.row = -1
    holding.reduce(table, "sequences", 1)
    holding.release(table, now=1.0)

    assert table.sequences.tolist() == [1, 0]


def test_concurrency_is_integrated_over_time() -> None:
    table = make_table()
    first, second = (Holding(table.instances[0], {"sequences": 1}) for _ in range(2))

    first.take(table, now=0.0)
    second.take(table, now=2.0)
    first.release(table, now=5.0)
    table.integrate(0, 6.0)

    assert table.sequence_integral[0] == 2 * 1 + 3 * 2 + 1 * 1
