"""Prompts computed in between make outputs slower."""

import pytest

from routing.core.table import EndpointTable, Instance
from routing.producers.prefill_share import MOST, PrefillShare
from tests.routing.pool.builders import endpoint_dict, make_document


def make_table() -> EndpointTable:
    document = make_document(endpoint_dict("busy"), endpoint_dict("quiet"))
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    return EndpointTable(document, instances, now=0.0)


def run(table: EndpointTable, share: PrefillShare, *, seconds: int, tokens: float) -> None:
    begin = round(float(table.prefill_done_tokens[1]))
    for second in range(begin, begin + seconds + 1):
        share.refresh(table, now=float(second))
        table.prefill_done_tokens[0] += tokens
        table.prefill_done_tokens[1] = second


@pytest.mark.lesson("W18")
def test_an_endpoint_that_computes_prompts_half_of_the_time_decodes_half_as_fast() -> None:
    table, share = make_table(), PrefillShare()
    half = 0.5 / float(table.prefill_seconds_per_token[0])

    run(table, share, seconds=60, tokens=half)

    assert table.stretch[0] == pytest.approx(2.0, rel=0.02)
    assert table.stretch[1] == pytest.approx(1.0, abs=1e-3)


def test_it_goes_away_with_the_prompts_and_has_a_bound() -> None:
    table, share = make_table(), PrefillShare()

    run(table, share, seconds=60, tokens=1e9)
    flooded = float(table.stretch[0])
    run(table, share, seconds=90, tokens=0.0)

    assert flooded == pytest.approx(1 / (1 - MOST), rel=0.02)
    assert table.stretch[0] == pytest.approx(1.0, abs=0.01)


def test_another_table_begins_with_its_own_sums() -> None:
    share, first = PrefillShare(), make_table()
    first.prefill_done_tokens[:] = 1e9
    share.refresh(first, now=0.0)

    second = make_table()
    share.refresh(second, now=1.0)
    share.refresh(second, now=2.0)

    assert second.stretch.tolist() == [1.0, 1.0]
