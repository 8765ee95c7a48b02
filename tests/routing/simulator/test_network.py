"""Transfers and routers that take one thing after the other."""

import pytest

from routing.simulator.network import Links, Station


def move(links: Links, source: str, destination: str, now: float) -> float:
    return links.move(
        source, destination, size=1e9, bytes_per_second=1e9, setup_seconds=0.1, now=now
    )


def test_a_transfer_takes_its_setup_and_its_bytes() -> None:
    links = Links()

    assert move(links, "p", "d", 2.0) == pytest.approx(3.1)
    assert links.bytes_moved == 10**9


def test_transfers_of_one_end_wait_for_each_other_and_others_do_not() -> None:
    links = Links()
    move(links, "p", "d", 0.0)

    assert move(links, "p", "e", 0.0) == pytest.approx(2.2)
    assert move(links, "q", "d", 0.0) == pytest.approx(2.2)
    assert move(links, "q2", "f", 0.0) == pytest.approx(1.1)


def test_both_ways_of_a_link_are_used_at_once() -> None:
    links = Links()
    move(links, "a", "b", 0.0)

    assert move(links, "b", "a", 0.0) == pytest.approx(1.1)


def test_a_router_without_a_limit_lets_all_pass_at_once() -> None:
    assert Station().passes(4.0) == 4.0


def test_a_router_takes_as_many_at_once_as_it_has_processes() -> None:
    station = Station(seconds_per_request=1.0, servers=2)

    assert [station.passes(0.0) for _ in range(5)] == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert station.passes(10.0) == 11.0


def test_open_streams_delay_what_comes_new_and_do_not_queue_it() -> None:
    station = Station(seconds_per_request=1.0, servers=2, seconds_per_open=0.1)

    assert station.passes(0.0, 10) == pytest.approx(1.5)
    assert station.passes(0.0, 0) == 1.0
