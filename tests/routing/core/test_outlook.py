"""The time per token that an answer will see, against the batch as it is."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from routing.core.outlook import MOST_SHARE, tpot_seconds
from routing.core.table import EndpointTable, Instance
from tests.routing.pool.builders import endpoint_dict, make_document

PROMPT, OUTPUT = 1000, 200


def make_table(**columns: float) -> EndpointTable:
    """One endpoint with ten sequences half-way through answers like the one that comes."""
    document = make_document(endpoint_dict("a"))
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    table = EndpointTable(document, instances, now=0.0)
    busy = {
        "sequences": 10.0,
        "context_tokens": 10.0 * (PROMPT + OUTPUT / 2),
        "remaining_tokens": 10.0 * OUTPUT / 2,
        "arriving_seconds": 1000.0,
    }
    for name, value in (busy | columns).items():
        getattr(table, name)[0] = value
    return table


def priced(table: EndpointTable) -> float:
    """As `routing.core.pricing` has it: the batch as it is, with the new one."""
    own = PROMPT + OUTPUT / 2
    step = (
        table.step_seconds[0]
        + table.step_seconds_per_sequence[0] * (table.sequences[0] + table.others[0] + 1)
        + table.step_seconds_per_context_token[0] * (table.context_tokens[0] + own)
    )
    return float(step * table.stretch[0])


def outlook(table: EndpointTable, *, ttft: float = 0.0) -> float:
    return tpot_seconds(
        table, 0, prompt_tokens=PROMPT, output_tokens=OUTPUT, ttft=ttft, priced=priced(table)
    )


def test_a_steady_load_is_what_a_price_takes_it_for() -> None:
    table = make_table()
    table.arrival_rate[0] = 10.0 / (OUTPUT * priced(table))

    assert outlook(table) == pytest.approx(priced(table), rel=0.01)


def test_without_arrivals_those_in_flight_end_half_way() -> None:
    table = make_table()
    half = make_table(sequences=5.0, context_tokens=5.0 * (PROMPT + OUTPUT / 2))

    assert outlook(table) == pytest.approx(priced(half), rel=0.01)


def test_who_comes_to_an_idle_endpoint_sees_the_others_come() -> None:
    nobody = {"sequences": 0.0, "context_tokens": 0.0, "remaining_tokens": 0.0}

    assert outlook(make_table(**nobody, arrival_rate=10.0)) > 1.05 * outlook(make_table(**nobody))


def test_arrivals_that_began_a_moment_ago_are_not_believed_to_last() -> None:
    fresh, lasting = make_table(arriving_seconds=0.1), make_table()
    for table in (fresh, lasting):
        table.arrival_rate[0] = 20.0

    assert outlook(fresh) < 0.8 * outlook(lasting)


def test_prompts_that_will_be_computed_in_between_make_it_longer() -> None:
    table = make_table()
    quiet = outlook(table)
    table.prompt_rate[0] = 0.2 / float(table.prefill_seconds_per_token[0])

    busy = outlook(table)
    table.prompt_fading[0] = 1.0

    assert busy == pytest.approx(quiet / 0.8, rel=0.02)
    assert quiet < outlook(table) < busy


def test_the_average_of_the_past_in_the_price_is_replaced_by_what_is_to_come() -> None:
    assert outlook(make_table(stretch=2.0)) == pytest.approx(outlook(make_table()))


def test_a_long_wait_lets_others_end_before() -> None:
    table = make_table()

    assert outlook(table, ttft=0.5) < outlook(table)


def test_what_other_people_send_is_taken_to_stay() -> None:
    assert outlook(make_table(others=10.0)) > outlook(make_table())


def test_the_ramp_of_a_fresh_endpoint_is_kept() -> None:
    table = make_table()
    arguments = {"prompt_tokens": PROMPT, "output_tokens": OUTPUT, "ttft": 0.0}

    twice = tpot_seconds(table, 0, **arguments, priced=2 * priced(table))

    assert twice == pytest.approx(2 * outlook(table))


def test_without_output_or_price_there_is_nothing_to_foresee() -> None:
    table = make_table()

    assert tpot_seconds(table, 0, prompt_tokens=9, output_tokens=0, ttft=0.0, priced=0.02) == 0.02
    unknown = tpot_seconds(
        table, 0, prompt_tokens=9, output_tokens=9, ttft=0.0, priced=float("nan")
    )
    assert unknown != unknown


@given(
    rate=st.floats(0, 1e4),
    tokens=st.floats(0, 1e7),
    fading=st.floats(0, 10),
    since=st.floats(0, 1e5),
    sequences=st.integers(0, 300),
    share=st.floats(0, 2),
    ttft=st.floats(0, 1e3),
)
def test_it_stays_between_an_empty_machine_and_a_full_one(
    rate: float, tokens: float, fading: float, since: float, sequences: int, share: float,
    ttft: float,
) -> None:  # fmt: skip
    table = make_table(
        sequences=float(sequences),
        context_tokens=sequences * (PROMPT + OUTPUT / 2),
        remaining_tokens=sequences * OUTPUT * share,
        arrival_rate=rate,
        prompt_rate=tokens,
        prompt_fading=fading,
        arriving_seconds=since,
    )
    empty = make_table(sequences=0.0, context_tokens=0.0)
    most = float(table.max_sequences[0])
    full = make_table(sequences=most, context_tokens=most * (PROMPT + OUTPUT / 2))

    found = outlook(table, ttft=ttft)

    assert priced(empty) * 0.999 <= found <= priced(full) / (1 - MOST_SHARE) * 1.001
