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
    prefill = 4000 * (0.92 + 0.08 * 2000 / 2048) / 20_000 + 4000 / 2048 * 0.006
    assert terms[PREFILL] == pytest.approx(prefill)
    assert terms[FIRST_STEP] == pytest.approx(0.006 + 0.010)
    assert terms[DECODE] == pytest.approx(100 * (0.006 + 5e-5 + 8e-8 * 4050))
    assert terms[HARM] == 0
    assert terms[CAPACITY] == pytest.approx(10 * prefill)
    assert terms[len(TERMS)] == pytest.approx(terms[: len(TERMS)].sum())


def test_a_hit_saves_prefill_and_capacity_only() -> None:
    cold, warm = price(make_table(), hits=[0.0, 3000.0]).values.T

    # A quarter of the tokens, which attend to the cached ones too.
    assert cold[PREFILL] / 4 < warm[PREFILL] < cold[PREFILL] / 3.5
    assert warm[CAPACITY] == pytest.approx(10 * warm[PREFILL])
    assert warm[DECODE] == cold[DECODE]


def test_queued_prefill_is_waited_for() -> None:
    table = make_table()
    table.prefill_tokens[0] = 10_000

    rate = price(table).values[PREFILL, 0] / 4000
    assert price(table).wait.tolist() == pytest.approx([10_000 * rate, 0.0])


def test_harm_is_what_sequences_in_flight_lose() -> None:
    table = make_table(1)
    table.sequences[0] = table.requests[0] = 10
    table.remaining_tokens[0] = 500

    terms = price(table).values[:, 0]

    slower = 5e-5 + 8e-8 * 4050
    assert terms[HARM] == pytest.approx(500 * slower + 10 * terms[PREFILL])


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


def test_what_is_probably_computed_of_the_first_prompt_is_not_waited_for() -> None:
    table = make_table()
    table.prefill_tokens[:] = 8000
    table.prefill_requests[:] = [1, 2]
    table.prompt_moved_at[:] = 0.0

    at_once, soon, late = (price(table, now=now).wait for now in (0.0, 0.05, 1000.0))

    assert (at_once - soon).tolist() == pytest.approx([0.05, 0.05])
    # Of two prompts only the first can be at work: the second is waited for however late it is.
    assert late.tolist() == pytest.approx([0.0, float(at_once[1]) / 2])


def test_kv_in_a_lower_tier_costs_its_time_to_load() -> None:
    table = make_table(2)
    table.load_factor[1] = 2.0
    demand = Demand(
        prompt_tokens=4000,
        output_tokens=100,
        hit_tokens=np.array([3000.0, 3000.0]),
        load_seconds=np.array([0.1, 0.1]),
    )

    terms = Quote(table, demand, PLAIN, now=0.0).local()

    assert terms.values[TERMS.index("load")].tolist() == pytest.approx([0.1, 0.2])
    assert terms.ttft_at(1) - terms.ttft_at(0) == pytest.approx(0.1)


@pytest.mark.lesson("W24")
def test_a_fresh_endpoint_pays_its_warm_up_but_is_used_when_the_warm_one_is_busy() -> None:
    table = make_table()
    table.warm_up_seconds[1] = 0.5
    table.has_cold = True

    quiet = price(table).total
    table.sequences[0] = table.requests[0] = 20
    table.remaining_tokens[0] = 2000
    busy = price(table).total

    assert quiet[1] - quiet[0] == pytest.approx(0.5)
    assert busy[1] < busy[0]


def penalties(
    table: EndpointTable, *, ttft: float | None, tpot: float | None = None, weight: float = 3.0
) -> list[float]:
    demand = Demand(
        prompt_tokens=4000,
        output_tokens=100,
        hit_tokens=np.zeros(len(table)),
        ttft_target=ttft,
        tpot_target=tpot,
    )
    quote = Quote(table, demand, ConsortParameters(slo_weight=weight), now=0.0)
    terms = quote.local()
    before = terms.total.copy()
    quote.penalise([(terms, np.arange(len(table)))])
    found: list[float] = terms.values[TERMS.index("slo")].tolist()
    assert (terms.total - before).tolist() == pytest.approx(found)
    return found


def test_a_missed_target_is_dearer_by_a_multiple_of_the_excess() -> None:
    table = make_table()
    table.prefill_tokens[1] = 40_000
    ttft = price(table).ttft_at(1)

    met, missed = penalties(table, ttft=1.0)

    assert met == 0.0
    assert missed == pytest.approx(3.0 * (ttft - 1.0))


def test_a_missed_time_per_token_counts_for_every_token() -> None:
    table = make_table()
    table.step_seconds[1] = 0.05
    tpot = price(table).tpot_at(1)

    met, missed = penalties(table, ttft=None, tpot=0.03)

    assert met == 0.0
    assert missed == pytest.approx(3.0 * 100 * (tpot - 0.03))


@pytest.mark.lesson("W25")
@pytest.mark.parametrize(
    ("queued", "expected"),
    [
        pytest.param([0, 40_000], "whole", id="one-can-meet-it"),
        pytest.param([30_000, 40_000], "part", id="none-can-but-nearly"),
        pytest.param([200_000, 400_000], "none", id="nobody-anywhere-near"),
        pytest.param([400_000], "none", id="a-single-candidate"),
    ],
)
def test_the_penalty_fades_where_nobody_can_meet_the_target(
    queued: list[int], expected: str
) -> None:
    table = make_table(len(queued))
    table.prefill_tokens[:] = queued
    excess = price(table).ttft_at(len(queued) - 1) - 1.0

    last = penalties(table, ttft=1.0)[-1]

    share = last / (3.0 * excess)
    assert {"whole": share == pytest.approx(1.0), "part": 0 < share < 1, "none": share == 0}[
        expected
    ]


@pytest.mark.lesson("W18")
def test_a_queue_of_prompts_makes_an_endpoint_dear_however_fast_it_decodes() -> None:
    table = make_table()
    table.step_seconds[0] /= 3
    table.prefill_tokens[0] = 100_000

    total = price(table).total

    assert total[0] > 2 * total[1]


@pytest.mark.lesson("W11")
def test_a_long_partial_hit_is_worth_more_than_a_full_one_of_a_short_prompt() -> None:
    short, long = (
        price(make_table(), prompt=prompt, hits=[0.0, float(hit)]).total
        for prompt, hit in ((100, 99), (8000, 4000))
    )

    assert short[0] - short[1] < (long[0] - long[1]) / 20
