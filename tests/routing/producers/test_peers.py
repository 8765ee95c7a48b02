"""Loads of other nodes: they converge whatever the network does, and vanish with their node."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.peer_messages import LOADS, name_of
from routing.core.table import _KEPT_COUNTS, EndpointTable, Instance
from routing.producers.peers import (
    FORGET_SECONDS,
    FRESH_SECONDS,
    GONE_SECONDS,
    MAX_NODES,
    PeerLoads,
)
from tests.routing.pool.builders import endpoint_dict, make_document

DOCUMENT = make_document(endpoint_dict("a"), endpoint_dict("b"), endpoint_dict("c"))


def make_table() -> EndpointTable:
    instances = [Instance(spec, row, row) for row, spec in enumerate(DOCUMENT.endpoints)]
    return EndpointTable(DOCUMENT, instances, now=0.0)


def made() -> tuple[PeerLoads, EndpointTable]:
    table, peers = make_table(), PeerLoads()
    peers.follow(table)
    return peers, table


def column(first: float, count: int = 1) -> np.ndarray:
    return np.full((len(LOADS), count), first)


def say(
    peers: PeerLoads, table: EndpointTable, load: float, *, number: int, now: float, row: int = 0
) -> None:
    assert peers.hear("r2", epoch=1, now=now)
    names = [name_of(table.instances[row])]
    peers.take("r2", number=number, names=names, values=column(load), now=now)
    peers.settle(table, now=now)


def test_the_columns_are_those_that_leases_change() -> None:
    assert set(LOADS) == set(_KEPT_COUNTS)


def test_others_leases_count_like_ours_and_can_be_told_apart() -> None:
    peers, table = made()
    table.requests[0] = 2

    say(peers, table, 5, number=1, now=0.0)

    assert table.requests.tolist() == [7, 0, 0]
    assert peers.own(table)[0].tolist() == [2, 0, 0]
    assert peers.theirs("requests", 0) == 5


def test_the_newest_figure_counts_in_whatever_order_packets_come() -> None:
    peers, table = made()

    say(peers, table, 5, number=2, now=0.0)
    say(peers, table, 9, number=1, now=0.1)
    say(peers, table, 5, number=2, now=0.1)

    assert table.sequences[0] == 5


def test_a_silent_node_fades_and_leaves_nothing() -> None:
    peers, table = made()
    say(peers, table, 8, number=1, now=0.0)

    left = []
    for now in (FRESH_SECONDS, (FRESH_SECONDS + GONE_SECONDS) / 2, GONE_SECONDS):
        peers.settle(table, now=now)
        left.append(table.prefill_tokens[0])

    assert left == [8, 4, 0]


def test_a_node_that_says_good_bye_is_gone_at_once_and_late_packets_are_not_heard() -> None:
    peers, table = made()
    say(peers, table, 8, number=1, now=0.0)

    peers.leave("r2", epoch=1)
    peers.settle(table, now=0.0)

    assert table.requests[0] == 0
    assert not peers.hear("r2", epoch=1, now=0.0)
    assert peers.nodes == []


def test_another_life_of_a_node_starts_from_nothing_and_its_former_life_is_not_heard() -> None:
    peers, table = made()
    say(peers, table, 8, number=100, now=0.0)

    assert peers.hear("r2", epoch=2, now=0.1)
    peers.settle(table, now=0.1)

    assert table.requests[0] == 0
    assert not peers.hear("r2", epoch=1, now=0.1)


def test_endpoints_of_another_document_or_another_instance_are_left_out() -> None:
    peers, table = made()
    peers.hear("r2", epoch=1, now=0.0)

    names = [123, name_of(table.instances[1])]
    peers.take("r2", number=1, names=names, values=column(4, 2), now=0.0)
    peers.settle(table, now=0.0)

    assert table.requests.tolist() == [0, 4, 0]


def test_when_the_table_is_replaced_figures_move_with_their_instances() -> None:
    peers, table = made()
    say(peers, table, 5, number=1, now=0.0, row=2)
    say(peers, table, 3, number=2, now=0.0, row=0)
    kept = table.instances[2]
    kept.row = 0
    table.instances[0].row = -1
    document = make_document(endpoint_dict("c"), endpoint_dict("d"))
    fresh = Instance(document.endpoints[1], 1, 3)
    after = EndpointTable(document, [kept, fresh], now=0.1)
    after.adopt(table, {0: 2})

    peers.follow(after)
    peers.settle(after, now=0.1)
    assert after.requests.tolist() == [5, 0]

    peers.leave("r2", epoch=1)
    peers.settle(after, now=0.1)
    assert after.requests.tolist() == [0, 0]


@pytest.mark.lesson("N01")
def test_nodes_are_bounded_and_forgotten() -> None:
    peers, table = made()
    heard = [peers.hear(f"r{number}", epoch=1, now=0.0) for number in range(MAX_NODES + 1)]

    peers.settle(table, now=FORGET_SECONDS + 1)

    assert heard == [True] * MAX_NODES + [False]
    assert peers.hear("another", epoch=1, now=FORGET_SECONDS + 1)


Step = tuple[int, int, int]


@given(
    steps=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 9)), max_size=40),
    fate=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_after_loss_repetition_and_another_order_the_sums_are_the_senders_sums(
    steps: list[Step], fate: st.DataObject
) -> None:
    """Two senders change their loads; a hostile network delivers; then one full round arrives."""
    peers, table = made()
    truth = [np.zeros((len(LOADS), 3)) for _ in range(2)]
    names = [name_of(instance) for instance in table.instances]
    sent: list[tuple[int, int, list[int], np.ndarray]] = []
    own = 3.0
    table.requests[1] = own
    for number, (sender, row, load) in enumerate(steps, start=1):
        truth[sender][:, row] = load
        sent.append((sender, number, [names[row]], truth[sender][:, [row]].copy()))
    order = fate.draw(st.permutations(sent)) if sent else []
    copies = [packet for packet in order for _ in range(fate.draw(st.integers(0, 2)))]

    for sender, number, endpoints, values in copies:
        peers.hear(f"s{sender}", epoch=1, now=0.0)
        peers.take(f"s{sender}", number=number, names=endpoints, values=values, now=0.0)
        peers.settle(table, now=0.0)
        assert all((getattr(table, name) >= 0).all() for name in LOADS)
    for sender in range(2):
        peers.hear(f"s{sender}", epoch=1, now=0.1)
        peers.take(f"s{sender}", number=99, names=names, values=truth[sender], now=0.1)
    peers.settle(table, now=0.1)

    expected = truth[0] + truth[1]
    expected[0, 1] += own
    assert np.array_equal(np.stack([getattr(table, name) for name in LOADS]), expected)
    peers.settle(table, now=0.1 + GONE_SECONDS)
    assert table.requests.tolist() == [0, own, 0]
