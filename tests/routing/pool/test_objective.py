"""The policy `consort` against a plain reading of its formulas."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from routing.core.document import ConsortParameters
from routing.core.pricing import BestTerms, Demand, PriceTerms, Quote
from routing.pool import objective
from routing.pool.knowledge import Knowledge
from routing.pool.objective import Priced
from tests.routing.pool.builders import CONTRACT, endpoint_dict, make_document

PROMPT, OUTPUT = 6000, 100


def known_of(prefills: int, decodes: int, boths: int) -> Knowledge:
    """A pool whose first prefill endpoint cannot reach the first decode endpoint."""
    roles = ["prefill"] * prefills + ["decode"] * decodes + ["both"] * boths
    endpoints = [endpoint_dict(f"e{row}", role=role) for row, role in enumerate(roles)]
    if prefills and decodes:
        endpoints[0]["kv_contract"] = CONTRACT | {"attention_backend": "OTHER"}
    return Knowledge(make_document(*endpoints), now=0.0)


def load(known: Knowledge, numbers: list[int]) -> None:
    table, source = known.table, itertools.cycle(numbers or [0])
    for row in range(len(table)):
        sequences = next(source) % 40
        table.sequences[row] = table.requests[row] = sequences
        table.context_tokens[row] = 2500 * sequences
        table.remaining_tokens[row] = 60 * sequences
        table.private_tokens[row] = 900 * sequences
        table.prefill_requests[row] = next(source) % 5
        table.prefill_tokens[row] = 1500 * table.prefill_requests[row]


def plain_totals(known: Knowledge, hits: list[float]) -> list[float]:
    """The cheapest way for each row, one endpoint and one pair after the other."""
    demand = Demand(prompt_tokens=PROMPT, output_tokens=OUTPUT, hit_tokens=np.array(hits))
    quote = Quote(known.table, demand, known.document.policy.parameters, now=0.0)
    local, pairs = quote.local(), known.pairs
    totals = local.total.tolist()
    for column, decode in enumerate(pairs.decode_rows.tolist()):
        if PROMPT - hits[decode] < known.document.disaggregation.minimum_uncached_tokens:
            continue
        for line, prefill in enumerate(pairs.prefill_rows.tolist()):
            moved = pairs.seconds_per_token[line, column] * (PROMPT - hits[decode])
            if np.isfinite(moved):
                terms = quote.pairs(
                    quote.prompt_side(np.array([prefill])),
                    np.array([0]),
                    decode_rows=np.array([decode]),
                    transfer=np.array([moved]),
                )
                totals[decode] = min(totals[decode], float(terms.total[0]))
    return totals


def price(known: Knowledge, hits: list[float]) -> Priced:
    demand = Demand(prompt_tokens=PROMPT, output_tokens=OUTPUT, hit_tokens=np.array(hits))
    eligible = known.rules.of(
        None, prompt_tokens=PROMPT, exclude=frozenset(), has_breakers=False, now=0.0
    )
    return objective.price(known, demand, eligible, one_place=False, now=0.0)


@given(
    shape=st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 3)),
    numbers=st.lists(st.integers(0, 1000), max_size=12),
    cached=st.lists(st.integers(0, PROMPT - 1), min_size=10, max_size=10),
)
@settings(max_examples=80, deadline=None)
def test_every_endpoint_is_priced_with_its_cheapest_way(
    shape: tuple[int, int, int], numbers: list[int], cached: list[int]
) -> None:
    known = known_of(*shape)
    load(known, numbers)
    hits = [float(tokens) for tokens in cached[: len(known.table)]]

    priced = price(known, hits)

    assert priced.terms.total.tolist() == pytest.approx(plain_totals(known, hits))
    for row in priced.rows.tolist():
        terms, column = priced.terms.at(row)
        assert terms.total[column] == pytest.approx(priced.terms.total[row])
        source = priced.terms.prefill_at(row)
        assert priced.hit_tokens[row] == hits[row if source < 0 else source]


def test_a_large_pool_is_priced_as_well_as_a_small_one() -> None:
    rng = np.random.default_rng(4)
    known = known_of(60, 80, 4)
    load(known, rng.integers(0, 1000, 97).tolist())
    hits = [0.0] * len(known.table)

    priced = price(known, hits)

    assert known.pairs.prior.size > objective.MAX_CELLS
    plain = plain_totals(known, hits)
    decodes = known.pairs.decode_rows
    assert priced.terms.total[decodes].tolist() == pytest.approx(np.array(plain)[decodes].tolist())


def priced_of(totals: list[float], hits: list[float]) -> Priced:
    terms = PriceTerms.empty(len(totals))
    terms.total[:] = totals
    return Priced(
        rows=np.arange(len(totals)),
        terms=BestTerms(terms),
        hit_tokens=np.array(hits),
        admission=np.zeros(len(totals)),
        seconds_per_token=np.full(len(totals), 1e-4),
    )


PARAMETERS = ConsortParameters(tie_share=0.03, leave_home_factor=4.0)


@pytest.mark.parametrize(
    ("totals", "hits", "expected"),
    [
        pytest.param([3.0, 1.0, 2.0], [0, 0, 0], {1}, id="cheapest"),
        pytest.param([1.0, 1.02, 1.2], [0, 10, 20], {1}, id="near-tie-to-the-longer-hit"),
        pytest.param([1.0, 1.3], [0, 1000], {1}, id="home-is-kept-for-a-small-gain"),
        pytest.param([1.0, 1.5], [0, 1000], {0}, id="home-is-left-for-a-large-gain"),
        pytest.param([1.0, 1.3, 1.2], [0, 1000, 1000], {2}, id="the-cheaper-of-two-homes"),
        pytest.param([1.0, 1.0, 1.0], [0, 0, 0], {0, 1, 2}, id="equal-ones-take-turns-by-chance"),
        pytest.param([5.0], [0], {0}, id="a-single-candidate"),
    ],
)
def test_which_endpoint_is_picked(
    totals: list[float], hits: list[float], expected: set[int]
) -> None:
    rng = np.random.default_rng(1)
    priced = priced_of(totals, hits)

    picked = {objective.pick(priced, PARAMETERS, rng) for _ in range(60)}

    assert picked == expected


@settings(deadline=None)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.integers(0, 9))
def test_the_following_ones_are_the_next_cheapest(totals: list[float], count: int) -> None:
    priced = priced_of(totals, [0.0] * len(totals))
    first = int(np.argmin(totals))

    following = objective.following(priced, first, count=count)

    others = sorted(total for row, total in enumerate(totals) if row != first)
    assert [totals[row] for row in following] == others[:count]
    assert first not in following


def test_nothing_that_is_picked_or_ranked_changes_the_prices() -> None:
    priced = priced_of([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])

    objective.following(priced, 0, count=2)

    assert priced.terms.total.tolist() == [1.0, 2.0, 3.0]
