"""What engines report, and other people's load."""

import numpy as np
import pytest

from routing.core.signals import EngineSignals
from routing.core.table import EndpointTable, Instance
from routing.producers.engine_load import STALE_SECONDS, EngineLoad
from tests.routing.pool.builders import endpoint_dict, make_document

DOCUMENT = make_document(endpoint_dict("a"), endpoint_dict("b"))


def make_table() -> EndpointTable:
    instances = [Instance(spec, row, row) for row, spec in enumerate(DOCUMENT.endpoints)]
    return EndpointTable(DOCUMENT, instances, now=0.0)


def test_what_others_sent_is_the_difference_to_our_leases() -> None:
    table, engines = make_table(), EngineLoad()
    table.requests[0] = 5

    for now in (0.0, 0.5):
        engines.observe(table, table.instances[0], EngineSignals(running=9, waiting=3), now=now)

    assert table.others[0] == 7
    assert table.others_waiting[0] == 3


def test_one_reading_that_differs_is_taken_for_requests_on_their_way() -> None:
    table, engines = make_table(), EngineLoad()
    for running in (0, 4, 0):
        engines.observe(table, table.instances[0], EngineSignals(running=running, waiting=0), now=0)

        assert table.others[0] == 0


def test_more_leases_than_the_engine_knows_is_never_negative() -> None:
    table, engines = make_table(), EngineLoad()
    table.requests[0] = 50

    for now in (0.0, 0.5):
        engines.observe(table, table.instances[0], EngineSignals(running=1, waiting=0), now=now)

    assert table.others[0] == 0


def test_unknown_signals_stay_unknown() -> None:
    table, engines = make_table(), EngineLoad()

    engines.observe(table, table.instances[0], EngineSignals(running=2), now=1.0)

    assert table.running[0] == 2
    assert table.waiting[0] != table.waiting[0]
    assert table.kv_usage[0] != table.kv_usage[0]
    assert table.capacity_tokens[0] == 380_000


def test_readings_expire() -> None:
    table, engines = make_table(), EngineLoad()
    for now in (0.0, 0.5):
        engines.observe(table, table.instances[0], EngineSignals(running=9, waiting=0), now=now)

    engines.expire(table, now=0.5 + STALE_SECONDS)
    fresh = table.others.tolist()
    engines.expire(table, now=0.6 + STALE_SECONDS)

    assert fresh == [9, 0]
    assert table.others.tolist() == [0, 0]
    assert table.running[0] != table.running[0]


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        pytest.param([None, None], [False, False], id="not-reported"),
        pytest.param([10.0, 10.0], [False, False], id="same-process"),
        pytest.param([10.0, None, 20.0], [False, False, True], id="restarted"),
    ],
)
def test_a_restart_shows_in_the_process_start(
    starts: list[float | None], expected: list[bool]
) -> None:
    table, engines = make_table(), EngineLoad()

    restarted = [
        engines.observe(table, table.instances[0], EngineSignals(process_start=start), now=0.0)
        for start in starts
    ]

    assert restarted == expected


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        pytest.param([100.0, 150.0, 150.0], [False, False, False], id="growing"),
        pytest.param([100.0, None, 5.0], [False, False, True], id="began-again"),
    ],
)
@pytest.mark.lesson("X03")
def test_a_counter_that_goes_back_is_a_restart_where_no_start_is_told(
    totals: list[float | None], expected: list[bool]
) -> None:
    table, engines = make_table(), EngineLoad()

    restarted = [
        engines.observe(
            table, table.instances[0], EngineSignals(prompt_tokens_total=total), now=0.0
        )
        for total in totals
    ]

    assert restarted == expected


@pytest.mark.lesson("W19")
def test_queued_tokens_beyond_ours_are_those_of_others() -> None:
    table, engines = make_table(), EngineLoad()
    table.prefill_tokens[0] = 3000
    signals = EngineSignals(running=1, waiting=2, waiting_tokens=10_000)

    engines.observe(table, table.instances[0], signals, now=0.0)
    assert table.others_tokens[0] == 7000

    engines.expire(table, now=1.0 + STALE_SECONDS)
    assert table.others_tokens[0] != table.others_tokens[0]


@pytest.mark.parametrize(
    ("told", "taken"), [(0.0, 0.0), (0.4, 0.4), (1.02, 1.0), (-5.0, np.nan), (1e300, np.nan)]
)
def test_a_usage_that_is_no_share_is_unknown(told: float, taken: float) -> None:
    table, engines = make_table(), EngineLoad()

    engines.observe(table, table.instances[0], EngineSignals(kv_usage=told), now=0.0)

    assert table.kv_usage[0] == pytest.approx(taken, nan_ok=True)
