"""What endpoints carry of load and of memory, against their shares."""

import numpy as np
import pytest

from routing.core.table import EndpointTable, Instance
from routing.pool.burden import Burden
from routing.producers.homes import GroupTable
from tests.routing.pool.builders import endpoint_dict, make_document


def make_table(*capacities: int | None) -> EndpointTable:
    document = make_document(
        *(
            endpoint_dict(f"e{row}", kv_capacity_tokens=tokens)
            for row, tokens in enumerate(capacities)
        )
    )
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    return EndpointTable(document, instances, now=0.0)


def make_burden(*capacities: int | None, groups: GroupTable | None = None) -> Burden:
    burden, table = Burden(), make_table(*capacities)
    burden.follow(table)
    begin(burden, table, groups)
    return burden


def begin(burden: Burden, table: EndpointTable, groups: GroupTable | None = None) -> None:
    count = len(table)
    burden.begin(
        table, np.ones(count, dtype=bool), np.full(count, 1 / count), groups or GroupTable()
    )


def table_of_groups(tokens: float) -> GroupTable:
    groups = GroupTable()
    groups.observe(range(8), tokens=tokens, now=0.0)
    return groups


def test_where_prefixes_take_little_memory_work_alone_decides_who_lacks() -> None:
    burden = make_burden(100_000, 100_000)
    burden.add(0, share=0.2, prompt=4_000)
    burden.add(1, share=0.6, prompt=1_000)

    burden.weigh()

    assert burden.memory_counts == 0.0
    assert burden.lacking().argmax() == 0


def test_where_prefixes_take_much_memory_the_one_that_holds_fewer_lacks_more() -> None:
    burden = make_burden(100_000, 100_000)
    burden.add(0, share=0.2, prompt=50_000)
    burden.add(1, share=0.6, prompt=20_000)

    burden.weigh()

    assert burden.memory_counts == 1.0
    assert burden.lacking().argmax() == 1


def test_between_the_two_both_count() -> None:
    burden = make_burden(100_000, 100_000)
    burden.add(0, share=0.5, prompt=30_000)
    burden.add(1, share=0.5, prompt=10_000)

    burden.weigh()

    assert burden.memory_counts == pytest.approx(0.5)
    assert burden.lacking().tolist() == pytest.approx([-0.125, 0.125])


def test_larger_memory_owes_more() -> None:
    burden = make_burden(300_000, 100_000)
    burden.add(0, share=0.5, prompt=60_000)
    burden.add(1, share=0.5, prompt=60_000)

    burden.weigh()

    assert burden.lacking().argmax() == 0


def test_a_pool_of_unknown_memory_goes_by_work() -> None:
    burden = make_burden(None, None)
    burden.add(0, share=0.2, prompt=1e9)

    burden.weigh()

    assert burden.memory_counts == 0.0
    assert burden.lacking().argmax() == 1


def test_strangers_count_where_they_went_and_are_forgotten_after_some_minutes() -> None:
    groups, table = table_of_groups(100.0), make_table(100_000, 100_000)
    burden = Burden()
    burden.follow(table)
    begin(burden, table, groups)

    less = burden.add_stranger(0, tokens=50.0, prompt=4_000, groups=groups)
    begin(burden, table, groups)
    at_once = burden.carried.tolist()
    burden.decay(600.0)
    begin(burden, table, groups)

    assert less == pytest.approx(0.5)
    assert at_once == [0.5, 0.0]
    assert burden.carried[0] < 0.001


def test_after_a_loss_of_all_caches_no_stranger_is_remembered() -> None:
    groups, table = table_of_groups(100.0), make_table(100_000, 100_000)
    burden = Burden()
    burden.follow(table)
    begin(burden, table, groups)
    burden.add_stranger(0, tokens=50.0, prompt=4_000, groups=groups)

    burden.forget()
    begin(burden, table, groups)

    assert burden.carried.tolist() == [0.0, 0.0]


def test_an_endpoint_that_may_carry_nothing_and_does_not_owes_nothing() -> None:
    table, burden = make_table(100_000, 100_000), Burden()
    burden.follow(table)
    burden.begin(table, np.array([True, False]), np.array([1.0, 0.0]), GroupTable())
    burden.add(0, share=0.5, prompt=10_000)

    assert burden.ratios().tolist() == [1.0, 0.0]
