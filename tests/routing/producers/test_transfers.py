"""How many transfers a failing pair may have at once."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.lease import Lease
from routing.core.table import Instance
from routing.producers.transfers import UNLIMITED_FROM, Pair, TransferBook


def instance(row: int) -> Instance:
    return Instance(cast(Any, None), row, 0)


PAIR: Pair = (instance(0), instance(1))


def lease(number: int, pair: Pair = PAIR) -> Lease:
    return cast(Lease, SimpleNamespace(number=number, prefill=pair[0], destination=pair[1]))


def book(running: int) -> tuple[TransferBook, list[bool]]:
    told: list[bool] = []
    transfers = TransferBook(lambda pair: told.append(transfers.is_full(pair)))
    for number in range(running):
        transfers.begin(lease(number))
    return transfers, told


def test_a_pair_that_never_failed_is_not_limited() -> None:
    transfers, told = book(500)

    assert transfers.limit_of(PAIR) is None
    assert (transfers.full(), told) == ([], [])


@pytest.mark.lesson("F08")
def test_a_failure_halves_what_may_run_at_once_and_arrivals_raise_it() -> None:
    transfers, told = book(8)

    transfers.fail(PAIR)
    assert (transfers.limit_of(PAIR), transfers.full()) == (4, [PAIR])
    for number in range(5):
        transfers.arrive(lease(number))

    assert transfers.limit_of(PAIR) == 9
    assert transfers.full() == []
    assert (told[0], told[-1]) == (True, False)


def test_one_transfer_at_a_time_stays_allowed() -> None:
    transfers, _ = book(1)

    for _ in range(10):
        transfers.fail(PAIR)

    assert transfers.limit_of(PAIR) == 1
    transfers.leave(lease(0))
    assert transfers.full() == []


def test_a_pair_that_recovered_is_not_limited_any_more() -> None:
    transfers, told = book(200)
    transfers.fail(PAIR)

    for number in range(UNLIMITED_FROM):
        transfers.arrive(lease(number))

    assert transfers.limit_of(PAIR) is None
    assert told[-1] is False


def test_a_pair_with_a_dead_end_is_forgotten() -> None:
    gone = instance(2)
    transfers, _ = book(1)
    transfers.begin(lease(7, (gone, PAIR[1])))
    transfers.fail((gone, PAIR[1]))
    gone.row = -1

    transfers.keep_alive_only()
    transfers.leave(lease(7))

    assert len(transfers) == 1
    assert transfers.full() == []


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from("balf")), max_size=60))
def test_any_order_of_events_ends_at_zero(events: list[tuple[int, str]]) -> None:
    transfers, told = book(0)
    for number, what in events:
        match what:
            case "b":
                if number not in transfers._of_lease:
                    transfers.begin(lease(number))
            case "a":
                transfers.arrive(lease(number))
            case "l":
                transfers.leave(lease(number))
            case _:
                transfers.fail(PAIR)
        limit = transfers.limit_of(PAIR)
        is_full = limit is not None and transfers.running(PAIR) >= limit
        assert (transfers.full() == [PAIR]) == is_full
        assert not told or told[-1] == is_full

    for number in range(7):
        transfers.leave(lease(number))

    assert (len(transfers), transfers.running(PAIR), transfers.full()) == (0, 0, [])
