"""The endpoint table: columns from a document, and what moves to the next one."""

import numpy as np
import pytest

from routing.core.table import EndpointTable, Instance
from tests.routing.pool.builders import SPEED, endpoint_dict, make_document


def table_of(*endpoints: dict[str, object]) -> EndpointTable:
    document = make_document(*endpoints)
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    return EndpointTable(document, instances, now=3.0)


def test_columns_follow_the_documents_order() -> None:
    table = table_of(
        endpoint_dict("p", role="prefill"),
        endpoint_dict("d", role="decode", state="draining"),
        endpoint_dict("b", speed_class="slow", jurisdiction=None),
    )

    assert table.ids == ("p", "d", "b")
    assert table.row_of == {"p": 0, "d": 1, "b": 2}
    assert table.answers.tolist() == [False, True, True]
    assert table.is_prefill.tolist() == [True, False, False]
    assert table.is_ready.tolist() == [True, False, True]
    assert table.jurisdictions == ("KR", "KR", None)
    assert table.step_seconds.tolist() == [0.006, 0.006, 0.018]
    # A prompt of 4,096 tokens is computed at the stated rate; longer ones attend to more.
    linear, attention = (
        column[0]
        for column in (
            table.prefill_seconds_per_token,
            table.prefill_seconds_per_token_and_context,
        )
    )
    expected = 1 / float(SPEED["prefill_tokens_per_second"])
    assert linear + attention * 2048 == pytest.approx(expected)


def test_what_is_unknown_is_nan_and_what_is_counted_is_zero() -> None:
    table = table_of(endpoint_dict("a", kv_capacity_tokens=None))

    for unknown in (table.running, table.waiting, table.kv_usage, table.observed_at):
        assert np.isnan(unknown).all()
    assert np.isnan(table.capacity_tokens).all()
    assert np.isnan(table.price_per_second).all()
    assert table.requests.tolist() == [0]
    assert np.isneginf(table.open_until).all()


def test_an_endpoint_without_a_context_limit_is_the_longest() -> None:
    table = table_of(endpoint_dict("a"), endpoint_dict("b", max_model_len=4096))

    assert table.max_model_len.tolist() == [np.inf, 4096]
    assert table.shortest_model_len == 4096


def test_knowledge_moves_with_its_endpoint() -> None:
    old = table_of(endpoint_dict("a"), endpoint_dict("b"))
    old.requests[:] = [4, 7]
    old.trust[:] = [0.5, 0.25]
    old.report_capacity(1, 777)
    new = table_of(endpoint_dict("b"), endpoint_dict("c"), endpoint_dict("a"))

    new.adopt(old, {0: 1, 2: 0})

    assert new.requests.tolist() == [7, 0, 4]
    assert new.trust.tolist() == [0.25, 1.0, 0.5]
    assert new.capacity_tokens.tolist() == [777, 380_000, 380_000]


def test_time_that_stands_still_adds_nothing() -> None:
    table = table_of(endpoint_dict("a"))
    table.sequences[0] = 5

    table.integrate(0, 3.0)
    table.integrate(0, 2.0)

    assert table.sequence_integral[0] == 0


def test_one_block_size_of_all_is_known_until_an_engine_reports_another() -> None:
    table = table_of(endpoint_dict("a"), endpoint_dict("b"))
    stated = table.block_size

    table.report_block_size(1, 64)
    differing = table.block_size
    table.report_block_size(0, 64)

    assert (stated, differing, table.block_size) == (16.0, None, 64.0)
