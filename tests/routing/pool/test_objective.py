"""The policy `consort` against a plain reading of its formulas."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from routing.core.document import ConsortParameters
from routing.core.price_terms import PREFILL
from routing.core.pricing import TERMS, BestTerms, Demand, PriceTerms, Quote
from routing.pool import objective
from routing.pool.eligibility import ANYWHERE
from routing.pool.knowledge import Knowledge
from routing.pool.objective import Priced
from tests.routing.pool.builders import CONTRACT, endpoint_dict, make_document, make_request

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
                    moving=np.array([moved]),
                )
                totals[decode] = min(totals[decode], float(terms.total[0]))
    return totals


def price(known: Knowledge, hits: list[float]) -> Priced:
    demand = Demand(prompt_tokens=PROMPT, output_tokens=OUTPUT, hit_tokens=np.array(hits))
    eligible = known.rules.of(
        make_request(),
        ANYWHERE,
        exclude=frozenset(),
        has_breakers=False,
        now=0.0,
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


@settings(deadline=None)
@given(
    numbers=st.lists(st.integers(0, 1000), max_size=12),
    cached=st.lists(st.integers(0, PROMPT - 1), min_size=10, max_size=10),
    money=st.sampled_from([0.0, 2.0]),
    target=st.sampled_from([None, 0.2]),
)
def test_the_named_terms_of_both_ways_sum_to_the_total(
    numbers: list[int], cached: list[int], money: float, target: float | None
) -> None:
    known = known_of(3, 4, 3)
    load(known, numbers)
    known.table.capacity_tokens[::2] = 30_000
    known.table.price_per_second[:] = 1e-3
    demand = Demand(
        prompt_tokens=PROMPT,
        output_tokens=OUTPUT,
        hit_tokens=np.array(cached, dtype=np.float64),
        ttft_target=target,
    )
    parameters = ConsortParameters(money_weight=money, slo_weight=3.0)
    quote = Quote(known.table, demand, parameters, now=0.0)
    prompt, columns = quote.prompt_side(known.pairs.prefill_rows), np.arange(4)
    local = quote.local()
    paired = quote.pairs(
        prompt,
        columns % 3,
        decode_rows=known.pairs.decode_rows,
        transfer=np.array([0.0, 0.1, 0.2, np.inf]),
        moving=np.array([0.0, 0.1, 0.1, np.inf]),
    )
    if target is not None:
        quote.penalise([(local, np.arange(10)), (paired, columns)])

    for terms in (local, paired):
        single = [list(terms.by_name(column).values()) for column in range(len(terms.total))]
        waits = terms.wait.tolist()
        sums = terms.values[: len(TERMS)].sum(axis=0).tolist()
        assert sums == pytest.approx(terms.total.tolist())
        np.testing.assert_allclose(np.array(single).T, terms.values)
        assert waits == terms.values[TERMS.index("wait")].tolist()


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


def priced_of(
    totals: list[float], hits: list[float], *, homes: tuple[int, ...] = (), building: float = 0.0
) -> Priced:
    """Every row has `building` seconds of prompt in its price."""
    terms = PriceTerms.empty(len(totals))
    terms.values[PREFILL] = building
    terms.total[:] = totals
    return Priced(
        rows=np.arange(len(totals)),
        terms=BestTerms(terms),
        hit_tokens=np.array(hits),
        admission=np.zeros(len(totals)),
        seconds_per_token=np.full(len(totals), 1e-4),
        homes=homes,
        shared_tokens=1000.0 if homes else 0.0,
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


@pytest.mark.parametrize(
    ("totals", "hits", "expected"),
    [
        pytest.param([0.017, 0.117], [1000, 0], 0, id="an-idle-holder-keeps-its-prefix"),
        pytest.param([0.017, 0.0275], [1000, 900], 0, id="also-when-the-home-lacks-only-a-part"),
        pytest.param([0.120, 0.117], [1000, 0], 1, id="a-home-that-is-cheaper-is-used"),
        pytest.param([1.000, 1.010], [1000, 0], 1, id="a-home-that-pays-soon-is-built"),
        pytest.param([1.000, 1.099], [1000, 0], 0, id="a-home-that-never-pays-is-not"),
        pytest.param([1.000, 1.030], [0, 1000], 1, id="a-home-with-its-prefix-is-kept"),
    ],
)
def test_a_prefix_moves_to_its_home_only_where_computing_it_there_pays(
    totals: list[float], hits: list[float], expected: int
) -> None:
    priced = priced_of(totals, hits, homes=(1,), building=0.1)

    picked = objective.pick(priced, PARAMETERS, np.random.default_rng(1))

    assert picked == expected


@settings(deadline=None)
@given(
    totals=st.lists(st.floats(0.01, 10), min_size=2, max_size=8),
    hits=st.lists(st.integers(0, 3), min_size=8, max_size=8),
    home=st.integers(0, 7),
)
def test_a_home_that_gets_no_cheaper_never_beats_a_cheaper_holder(
    totals: list[float], hits: list[int], home: int
) -> None:
    held = [float(hit * 500) for hit in hits[: len(totals)]]
    home %= len(totals)
    holders = [total for total, hit in zip(totals, held, strict=True) if hit == max(held)]
    assume(held[home] < max(held) and totals[home] > min(holders))
    priced = priced_of(totals, held, homes=(home,))

    picked = objective.pick(priced, PARAMETERS, np.random.default_rng(1))

    assert picked != home


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


def test_a_prompt_that_is_there_already_leaves_no_price_unknown() -> None:
    known = known_of(2, 2, 1)

    with np.errstate(invalid="raise"):
        priced = price(known, [0.0, 0.0, float(PROMPT), float(PROMPT), 0.0])

    assert np.isfinite(priced.totals).all()
