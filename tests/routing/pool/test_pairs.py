"""Pairs of a document: costs, breakers, and what survives another document."""

import numpy as np
import pytest

from routing.core.table import Flags
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


def test_what_is_learned_of_a_pair_is_in_its_cost_at_once_and_never_opens_a_closed_one() -> None:
    known = known_of()
    everybody, nobody = all_prefills(known), np.zeros(len(known.table), dtype=np.bool_)

    def costs(prefills: Flags) -> list[list[float]]:
        found: list[list[float]] = known.pairs.costs(prefills, one_place=False, now=0.0).tolist()
        return found

    before = costs(everybody), costs(nobody)
    known.pairs.observe(0, 2, tokens=1000, seconds=1.0)
    after = costs(everybody), costs(nobody)

    assert before[0] == [[pytest.approx(163_840 / 12.5e9)]] * 2
    assert after[0] == known.pairs.seconds_per_token.tolist()
    assert after[0][0][0] > before[0][0][0]
    assert before[1] == after[1] == [[np.inf], [np.inf]]


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


@pytest.mark.lesson("F09")
@pytest.mark.parametrize(
    ("prefill", "decode", "pairs"),
    [
        pytest.param(None, None, True, id="no-groups"),
        pytest.param("blue", "blue", True, id="one-group"),
        pytest.param("blue", "green", False, id="two-groups"),
        pytest.param("blue", None, False, id="group-and-none"),
    ],
)
def test_pairs_are_made_within_one_role_group(
    prefill: str | None, decode: str | None, *, pairs: bool
) -> None:
    known = Knowledge(
        make_document(
            endpoint_dict("p", role="prefill", role_group=prefill),
            endpoint_dict("d", role="decode", role_group=decode),
        ),
        now=0.0,
    )

    assert known.pairs.exists == pairs
    verdict = known.pairs.verdicts[0][0]
    assert pairs or "one role group" in verdict.reason


def test_a_full_pair_is_out_until_it_has_room() -> None:
    known = known_of()
    known.pairs.set_full(0, 2, is_full=True)

    during = known.pairs.prefill_rows_for(2, all_prefills(known), one_place=False, now=0.0)
    known.pairs.set_full(0, 2, is_full=False)
    after = known.pairs.prefill_rows_for(2, all_prefills(known), one_place=False, now=0.0)

    assert (during, after) == ([1], [0, 1])
