"""Requests that wait for a full endpoint are priced again, in turn, a few in each search."""

import itertools

from routing.core.decision import Decision
from routing.pool.choosing_again import MOST_PRICED
from routing.producers.fair_share import Ticket
from tests.routing.pool.builders import make_request
from tests.routing.pool.crowds import crowd, router_of, wait
from tests.routing.pool.waits import done, drain


def test_who_waits_for_a_full_endpoint_goes_to_another_one_that_ran_dry() -> None:
    router = router_of("a", "b")
    leases = crowd(router, "x")
    tickets = [wait(router, make_request("x", max_tokens=500, id=f"waiting-{n}")) for n in range(6)]
    wanted, table = tickets[0].gate[1], router._known.table
    other = next(name for name in ("a", "b") if name != wanted)
    table.context_tokens[table.row_of[wanted]] += 100_000
    for lease in [lease for lease in leases if lease.destination.spec.id == other]:
        done(router, lease, now=1.0)

    released = []
    for _ in tickets:
        (found,) = drain(router, now=2.0)
        released.append(found)
        done(router, found[1], now=2.0)

    assert {lease.destination.spec.id for _, lease in released} == {other}
    assert {ticket.number for ticket, _ in released} == {ticket.number for ticket in tickets}


def test_in_one_search_few_are_priced_again_and_in_some_searches_all() -> None:
    router = router_of("a", "b")
    table = router._known.table
    for number in range(20):
        request = make_request("x", max_tokens=500, id=str(number), forced=("a",))
        router.queue.offer(request, body_bytes=1, now=0.0, endpoint="a")
    table.context_tokens[table.row_of["a"]] += 100_000
    priced: list[list[str]] = []

    def price(ticket: Ticket) -> Decision:
        priced[-1].append(ticket.request.id)
        return router.decide(ticket.request, now=1.0)

    for _ in range(20 // MOST_PRICED):
        priced.append([])
        assert router.queue.release(now=1.0, decide=price) is None

    assert {len(names) for names in priced} == {MOST_PRICED}
    assert sorted(itertools.chain(*priced), key=int) == [str(number) for number in range(20)]


def test_nobody_is_priced_again_while_no_endpoint_is_idle() -> None:
    router = router_of("a", "b")
    crowd(router, "x")
    wait(router, make_request("x", max_tokens=500, id="waiting"))
    router._known.table.context_tokens += 100_000

    def price(ticket: Ticket) -> Decision:
        raise AssertionError(ticket)

    assert router.queue.release(now=1.0, decide=price) is None
