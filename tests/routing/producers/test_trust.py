"""Trust in predicted hits."""

import hypothesis.strategies as st
from hypothesis import given, settings

from routing.core.table import EndpointTable, Instance
from routing.producers import trust
from tests.routing.pool.builders import endpoint_dict, make_document

DOCUMENT = make_document(endpoint_dict("a"), endpoint_dict("b"))


def make_table() -> EndpointTable:
    instances = [Instance(spec, row, row) for row, spec in enumerate(DOCUMENT.endpoints)]
    return EndpointTable(DOCUMENT, instances, now=0.0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-10, 9000), st.none() | st.integers(0, 20_000)), max_size=50))
def test_trust_stays_between_its_floor_and_one(seen: list[tuple[int, int | None]]) -> None:
    table = make_table()

    for predicted, cached in seen:
        trust.observe_hit(table, 0, predicted_tokens=predicted, cached_tokens=cached)

    assert trust.FLOOR <= table.trust[0] <= 1.0
    assert table.trust[1] == 1.0


def test_trust_comes_back_when_hits_are_confirmed() -> None:
    table = make_table()
    for _ in range(30):
        trust.observe_hit(table, 0, predicted_tokens=1000, cached_tokens=0)

    for _ in range(60):
        trust.observe_hit(table, 0, predicted_tokens=1000, cached_tokens=1000)

    assert table.trust[0] > 0.95


def test_a_reason_for_doubt_lowers_trust_and_confirmed_hits_earn_it_back() -> None:
    table = make_table()

    trust.distrust(table, 0)
    assert table.trust[0] == trust.DOUBTED
    for _ in range(50):
        trust.observe_hit(table, 0, predicted_tokens=100, cached_tokens=100)

    assert table.trust[0] > 0.95
    table.trust[0] = 0.1
    trust.distrust(table, 0)
    assert table.trust[0] == 0.1
