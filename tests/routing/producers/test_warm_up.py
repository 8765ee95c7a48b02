"""What fresh processes cost, learned from those that were seen."""

import pytest

from routing.core.table import EndpointTable, Instance
from routing.producers.warm_up import FIRST_GUESS_SECONDS, MOST_SECONDS, WarmUp
from tests.routing.pool.builders import endpoint_dict, make_document


def make_table() -> EndpointTable:
    document = make_document(endpoint_dict("a"), endpoint_dict("b"))
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    return EndpointTable(document, instances, now=0.0)


def test_a_fresh_process_is_dearer_until_it_answered() -> None:
    table, warm_up = make_table(), WarmUp()
    fresh = table.instances[1]

    warm_up.begin(table, fresh)

    assert table.warm_up_seconds.tolist() == [0.0, FIRST_GUESS_SECONDS]
    assert table.has_cold
    warm_up.answered(table, fresh, excess_seconds=None)
    assert table.warm_up_seconds.tolist() == [0.0, 0.0]
    assert not table.has_cold
    assert warm_up.seconds("fast") == FIRST_GUESS_SECONDS


@pytest.mark.parametrize(("excess", "expected"), [(12.0, 12.0), (-1.0, 0.0), (1e6, MOST_SECONDS)])
def test_a_class_learns_its_cost_within_bounds(excess: float, expected: float) -> None:
    table, warm_up = make_table(), WarmUp()

    for _ in range(30):
        warm_up.answered(table, table.instances[0], excess_seconds=excess)

    assert warm_up.seconds("fast") == pytest.approx(expected, abs=0.01)
    warm_up.keep_only(set())
    assert warm_up.seconds("fast") == FIRST_GUESS_SECONDS
