"""What is on its way: rates of a class by shares, and prompts that get cheaper."""

import numpy as np
import pytest

from routing.core.table import EndpointTable, Instance
from routing.pool.router import PoolRouter
from routing.producers.arrivals import Arrivals
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router

SECOND = 4
"""Looks per second."""


def make_table(*names: str, state: str = "ready") -> EndpointTable:
    first, *others = names
    document = make_document(
        endpoint_dict(first, state=state), *[endpoint_dict(name) for name in others]
    )
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    return EndpointTable(document, instances, now=0.0)


def run(
    arrivals: Arrivals,
    table: EndpointTable,
    *,
    seconds: float,
    requests: tuple[float, ...],
    tokens: float = 0.0,
    begin: float = 0.0,
) -> float:
    """So many requests a second at each row, each with so many tokens; returns the time after."""
    for look in range(int(seconds * SECOND)):
        arrivals._counts[0] += np.array(requests) / SECOND
        arrivals._counts[1] += np.array(requests) * tokens / SECOND
        arrivals.refresh(table, now=begin + (look + 1) / SECOND)
    return begin + seconds


def following(table: EndpointTable) -> Arrivals:
    arrivals = Arrivals()
    arrivals.follow(table)
    return arrivals


def test_a_steady_rate_is_known_from_its_first_second_on() -> None:
    table = make_table("a", "b")
    arrivals = following(table)

    run(arrivals, table, seconds=1, requests=(8.0, 8.0), tokens=100.0)

    assert table.arrival_rate.tolist() == pytest.approx([8.0, 8.0])
    assert table.prompt_rate.tolist() == pytest.approx([800.0, 800.0])
    assert table.prompt_fading.tolist() == pytest.approx([0.0, 0.0])
    assert table.arriving_seconds.tolist() == [1.0, 1.0]


def test_an_endpoint_that_gets_less_for_long_is_expected_to_get_less() -> None:
    table = make_table("a", "b")
    arrivals = following(table)

    run(arrivals, table, seconds=60, requests=(30.0, 10.0))

    assert table.arrival_rate.sum() == pytest.approx(40.0)
    assert 10.0 < table.arrival_rate[1] < 14.0


def test_who_cannot_be_chosen_gets_nothing() -> None:
    table = make_table("a", "b", state="draining")
    arrivals = following(table)

    run(arrivals, table, seconds=5, requests=(0.0, 10.0))

    assert table.arrival_rate.tolist() == pytest.approx([0.0, 10.0])


def test_prompts_that_get_cheaper_are_foreseen_to_get_cheaper_still() -> None:
    table = make_table("a")
    arrivals, now = following(table), 0.0

    for tokens in (4000.0, 3000.0, 2000.0, 1000.0, 500.0):
        now = run(arrivals, table, seconds=3, requests=(40.0,), tokens=tokens, begin=now)

    # The fast mean is still of 4 seconds.
    assert table.prompt_rate[0] < 40.0 * 900
    assert table.prompt_fading[0] > 0.05


def test_dearer_prompts_are_no_trend() -> None:
    table = make_table("a")
    arrivals = following(table)

    now = run(arrivals, table, seconds=10, requests=(40.0,), tokens=100.0)
    run(arrivals, table, seconds=2, requests=(40.0,), tokens=4000.0, begin=now)

    assert table.prompt_fading[0] == 0.0


def test_a_pool_that_was_idle_begins_anew() -> None:
    table = make_table("a")
    arrivals = following(table)

    now = run(arrivals, table, seconds=20, requests=(40.0,), tokens=100.0)
    now = run(arrivals, table, seconds=0.5, requests=(0.0,), begin=now)
    idle = [float(table.arrival_rate[0]), float(table.arriving_seconds[0])]
    run(arrivals, table, seconds=1, requests=(4.0,), begin=now)

    assert idle == [0.0, 0.0]
    assert table.arrival_rate[0] == pytest.approx(4.0)


def test_a_pause_with_requests_in_flight_is_a_low_rate() -> None:
    table = make_table("a")
    arrivals = following(table)

    now = run(arrivals, table, seconds=20, requests=(40.0,))
    table.sequences[0] = 3.0
    run(arrivals, table, seconds=2, requests=(0.0,), begin=now)

    assert 5.0 < table.arrival_rate[0] < 35.0


def test_other_routers_send_in_proportion_to_what_they_have_in_flight() -> None:
    table = make_table("a")
    arrivals = following(table)

    arrivals._counts[0] += 10.0
    arrivals.refresh(table, now=1.0, multiple=3.0)

    assert table.arrival_rate[0] == pytest.approx(30.0)


def test_instances_keep_their_counts_in_another_table() -> None:
    table = make_table("a", "b")
    arrivals = following(table)
    now = run(arrivals, table, seconds=20, requests=(30.0, 10.0))

    document = make_document(endpoint_dict("b"), endpoint_dict("a"))
    swapped = EndpointTable(document, list(reversed(table.instances)), now=now)
    arrivals.follow(swapped)
    run(arrivals, swapped, seconds=0.25, requests=(10.0, 30.0), begin=now)

    assert swapped.arrival_rate.sum() == pytest.approx(40.0)
    assert swapped.arrival_rate[1] > swapped.arrival_rate[0]


def test_a_router_counts_what_it_sends() -> None:
    router: PoolRouter = make_router(endpoint_dict("a"))
    request = make_request("hello " * 400)
    for number in range(8):
        decision = router.decide(request, now=number / 4)
        router.begin(request, decision, now=number / 4)

    router.decide(request, now=2.0)

    table = router._known.table
    assert table.arrival_rate[0] == pytest.approx(4.0, rel=0.2)
    assert table.prompt_rate[0] > 0
