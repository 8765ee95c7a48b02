"""Pairs of a document: costs, breakers, and what survives another document."""

import numpy as np
import pytest

from routing.pool.knowledge import Knowledge
from routing.pool.pairs import UNSTATED_LINK_BYTES_PER_SECOND
from tests.routing.pool.builders import CONTRACT, SPEED, endpoint_dict, make_document


def known_of(**decode: object) -> Knowledge:
    return Knowledge(
        make_document(
            endpoint_dict("p1", role="prefill"),
            endpoint_dict("p2", role="prefill"),
            endpoint_dict("d", **({"role": "decode"} | decode)),
        ),
        now=0.0,
    )


def all_prefills(known: Knowledge) -> np.ndarray:
    return known.table.is_prefill


def test_the_cost_is_the_contracts_own() -> None:
    pairs = known_of().pairs

    assert pairs.seconds_per_token.tolist() == [[pytest.approx(163_840 / 12.5e9)]] * 2


def test_an_unstated_rate_costs_what_a_published_network_does() -> None:
    contract = CONTRACT | {"transfer_bytes_per_second": None}

    pairs = known_of(kv_contract=contract).pairs

    stated = float(SPEED["kv_bytes_per_token"]) / UNSTATED_LINK_BYTES_PER_SECOND
    assert pairs.seconds_per_token[0, 0] == pytest.approx(stated)


def test_only_decode_endpoints_have_pairs() -> None:
    known = known_of(role="both")

    assert not known.pairs.exists
    assert known.pairs.prefill_rows_for(2, all_prefills(known), one_place=False, now=0.0) == []


def test_an_open_pair_is_out_until_its_time() -> None:
    known = known_of()
    known.pairs.set_open(0, 2, 5.0)

    during = known.pairs.prefill_rows_for(2, all_prefills(known), one_place=False, now=4.0)
    after = known.pairs.prefill_rows_for(2, all_prefills(known), one_place=False, now=5.0)

    assert (during, after) == ([1], [0, 1])


def test_a_cost_is_learned_within_bounds() -> None:
    known = known_of()
    stated = float(known.pairs.seconds_per_token[0, 0])

    for _ in range(200):
        known.pairs.observe(0, 2, tokens=1000, seconds=1000 * 1000 * stated)
    for tokens, seconds in ((0, 1.0), (100, 0.0), (100, -1.0)):
        known.pairs.observe(1, 2, tokens=tokens, seconds=seconds)

    assert known.pairs.seconds_per_token[0, 0] == pytest.approx(8 * stated, rel=0.01)
    assert known.pairs.seconds_per_token[1, 0] == stated


def test_costs_and_breakers_follow_their_endpoints_to_another_document() -> None:
    known = known_of()
    for _ in range(50):
        known.pairs.observe(0, 2, tokens=1000, seconds=0.05)
    known.pairs.set_open(1, 2, 100.0)
    learned = float(known.pairs.seconds_per_token[0, 0])

    known.install(
        make_document(
            endpoint_dict("d", role="decode"),
            endpoint_dict("p3", role="prefill"),
            endpoint_dict("p2", role="prefill"),
            endpoint_dict("p1", role="prefill"),
            version=2,
        ),
        now=1.0,
    )

    assert known.pairs.seconds_per_token[2, 0] == learned
    rows = known.pairs.prefill_rows_for(0, all_prefills(known), one_place=False, now=1.0)
    assert [known.table.ids[row] for row in rows] == ["p3", "p1"]


def test_forgetting_keeps_breakers() -> None:
    known = known_of()
    known.pairs.observe(0, 2, tokens=1000, seconds=1.0)
    known.pairs.set_open(1, 2, 100.0)

    known.forget()

    assert known.pairs.scale.tolist() == [[1.0], [1.0]]
    assert known.pairs.prefill_rows_for(2, all_prefills(known), one_place=False, now=1.0) == [0]
