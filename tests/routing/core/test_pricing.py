"""The price in seconds: what makes an endpoint dearer, term by term."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from routing.core.document import ConsortParameters
from routing.core.pricing import TERMS, Demand, PriceTerms, Quote
from routing.core.table import EndpointTable, Instance
from tests.routing.pool.builders import endpoint_dict, make_document

PLAIN = ConsortParameters(harm_weight=1.0, capacity_weight=10.0)
WAIT, PREFILL, FIRST_STEP, DECODE, HARM, CAPACITY = (
    TERMS.index(name) for name in ("wait", "prefill", "first_step", "decode", "harm", "capacity")
)


def make_table(count: int = 2, **overrides: Any) -> EndpointTable:
    document = make_document(*(endpoint_dict(f"e{row}", **overrides) for row in range(count)))
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    return EndpointTable(document, instances, now=0.0)


def price(
    table: EndpointTable,
    *,
    prompt: int = 4000,
    output: int = 100,
    hits: list[float] | None = None,
    parameters: ConsortParameters = PLAIN,
    now: float = 0.0,
) -> PriceTerms:
    hit_tokens = np.array(hits or [0.0] * len(table))
    demand = Demand(prompt_tokens=prompt, output_tokens=output, hit_tokens=hit_tokens)
    return Quote(table, demand, parameters, now=now).local()


def test_an_idle_endpoint_costs_its_own_time_and_the_capacity_term() -> None:
    terms = price(make_table(1)).values[:, 0]

    # 20,000 tokens/s; 6 ms + 50 us per sequence + 80 ns per token of context.
    assert terms[WAIT] == 0
    assert terms[PREFILL] == pytest.approx(0.2)
    assert terms[FIRST_STEP] == pytest.approx(0.006)
    assert terms[DECODE] == pytest.approx(100 * (0.006 + 5e-5 + 8e-8 * 4050))
    assert terms[HARM] == 0
    assert terms[CAPACITY] == pytest.approx(2.0)
    assert terms[len(TERMS)] == pytest.approx(terms[: len(TERMS)].sum())


def test_a_hit_saves_prefill_and_capacity_only() -> None:
    cold, warm = price(make_table(), hits=[0.0, 3000.0]).values.T

    assert warm[PREFILL] == pytest.approx(cold[PREFILL] / 4)
    assert warm[CAPACITY] == pytest.approx(cold[CAPACITY] / 4)
    assert warm[DECODE] == cold[DECODE]


def test_queued_prefill_is_waited_for() -> None:
    table = make_table()
    table.prefill_tokens[0] = 10_000

    assert price(table).wait.tolist() == pytest.approx([0.5, 0.0])


def test_harm_is_what_sequences_in_flight_lose() -> None:
    table = make_table(1)
    table.sequences[0] = table.requests[0] = 10
    table.remaining_tokens[0] = 500

    terms = price(table).values[:, 0]

    slower = 5e-5 + 8e-8 * 4050
    assert terms[HARM] == pytest.approx(500 * slower + 10 * 0.2)


def test_harm_counts_no_longer_than_this_request_lasts() -> None:
    table = make_table(1)
    table.sequences[0] = 10
    table.remaining_tokens[0] = 1_000_000

    terms = price(table, output=10, hits=[3999.0]).values[:, 0]

    assert terms[HARM] == pytest.approx(10 * 10 * (5e-5 + 8e-8 * 4005), rel=1e-6)


def test_full_memory_is_waited_for_and_an_unknown_size_is_not() -> None:
    table = make_table(3)
    table.capacity_tokens[:] = [10_000, 10_000, np.nan]
    table.private_tokens[:] = [9_000, 1_000, 9_000]
    table.sequences[:] = 5

    wait = price(table).wait

    assert wait[0] > 0
    assert wait[1:].tolist() == [0, 0]


def test_the_engines_own_usage_counts_when_it_is_higher() -> None:
    table = make_table()
    table.capacity_tokens[:] = 10_000
    table.kv_usage[:] = [0.95, np.nan]

    wait = price(table).wait

    assert wait[0] > 0
    assert wait[1] == 0


def test_no_free_sequence_is_waited_for() -> None:
    table = make_table(2, max_sequences=4)
    table.sequences[0] = 4

    wait = price(table).wait

    assert wait[0] > 0
    assert wait[1] == 0


def test_other_peoples_requests_weigh_like_ours() -> None:
    ours, theirs = make_table(1), make_table(1)
    ours.sequences[0], ours.context_tokens[0] = 7, 7 * 4000
    theirs.others[0] = 7

    assert price(theirs).tpot_at(0) == pytest.approx(price(ours).tpot_at(0))


def test_weights_scale_their_terms() -> None:
    table = make_table(1)
    table.sequences[0] = table.requests[0] = 3

    once = price(table).values[:, 0]
    twice = price(
        table, parameters=ConsortParameters(harm_weight=2.0, capacity_weight=20.0)
    ).values[:, 0]

    assert twice[HARM] == pytest.approx(2 * once[HARM])
    assert twice[CAPACITY] == pytest.approx(2 * once[CAPACITY])


def test_an_unknown_price_counts_as_the_dearest() -> None:
    table = make_table(3)
    table.price_per_second[:] = [1.0, 3.0, np.nan]
    parameters = ConsortParameters(money_weight=1.0)

    money = price(table, parameters=parameters).values[TERMS.index("money")]

    assert money[1] == pytest.approx(3 * money[0])
    assert money[2] == money[1]


LOADS = st.tuples(st.integers(0, 200), st.integers(0, 50_000), st.floats(0, 3999))


@given(
    load=LOADS,
    more=LOADS,
    prompt=st.integers(4000, 9000),
    output=st.integers(1, 2000),
)
@settings(max_examples=150, deadline=None)
def test_more_load_or_less_cache_never_makes_an_endpoint_cheaper(
    load: tuple[int, int, float], more: tuple[int, int, float], prompt: int, output: int
) -> None:
    table = make_table()
    for row, (sequences, queued, _) in enumerate((load, more)):
        sequences += load[0] * row
        queued += load[1] * row
        table.sequences[row] = table.requests[row] = sequences
        table.context_tokens[row] = 3000 * sequences
        table.remaining_tokens[row] = 50 * sequences
        table.prefill_tokens[row] = queued
    hits = [load[2], max(0.0, load[2] - more[2])]

    terms = price(table, prompt=prompt, output=output, hits=hits)

    assert terms.total[1] >= terms.total[0] - 1e-9
    assert (terms.values >= 0).all()
    assert np.isfinite(terms.values).all()


def test_a_ramp_makes_a_shared_endpoint_dearer_until_it_is_over() -> None:
    table = make_table(1, ramp_seconds=100)
    table.sequences[0] = 1

    early, late = (float(price(table, now=now).total[0]) for now in (10.0, 100.0))
    table.sequences[0] = 0
    alone = float(price(table, now=10.0).total[0])

    assert early > 5 * late
    assert alone < late
