"""Requests wait for the endpoint that their price chose, when its batch has no room for them."""

from typing import Any

import msgspec

from routing.core.document import TenantSpec
from routing.core.request import InferenceRequest
from routing.pool.waiting import MOST_LOOKS
from tests.routing.pool.builders import SPEED, endpoint_dict, make_request, make_router
from tests.routing.pool.crowds import QUEUE, crowd, router_of, wait
from tests.routing.pool.waits import done, drain, send

NOT_HERE = frozenset({"somewhere"})
"""A retry is not gated."""


def test_a_batch_takes_no_more_than_keep_the_pools_time_per_token() -> None:
    router = router_of("a")

    leases = crowd(router, "x")
    stopped = router.decide(make_request("x", max_tokens=500), now=0.0).refusal

    assert 5 < len(leases) < 24
    assert stopped is not None
    assert (stopped.status, stopped.code, stopped.rule) == (
        429,
        "pool-saturated",
        "saturation:decode",
    )
    assert stopped.waits_for == "a"
    assert stopped.retry_after_seconds is not None
    assert stopped.retry_after_seconds >= 1


def test_it_goes_when_one_of_the_batch_has_ended() -> None:
    router = router_of("a")
    leases = crowd(router, "x")
    ticket = wait(router, make_request("x", max_tokens=500, id="waiting"))

    before = drain(router, now=1.0)
    done(router, leases[0], now=2.0)
    after = drain(router, now=2.0)

    assert before == []
    assert [released for released, _ in after] == [ticket]


def test_nobody_is_stopped_where_requests_cannot_wait_or_there_is_no_target() -> None:
    no_queue = router_of("a", admission={"queue_requests": 0})
    no_target = router_of("a", slo={})

    for router in (no_queue, no_target):
        for number in range(60):
            request = make_request("x", max_tokens=500, id=str(number))
            assert send(router, request) is not None


def test_a_target_that_not_even_one_request_can_meet_stops_nobody() -> None:
    router = router_of("a", slo={"tpot_seconds": SPEED["step_seconds"] / 2})

    sent = [send(router, make_request("x", max_tokens=500, id=str(n))) for n in range(30)]

    assert all(lease is not None for lease in sent)


def test_who_waits_for_a_full_endpoint_does_not_hold_up_who_waits_for_another() -> None:
    router = router_of("a", "b")
    held = []
    for prefix in ("x" * 4000, "y" * 4000):
        while (
            lease := send(router, make_request(prefix, max_tokens=500, id=str(len(held))))
        ) is not None:
            router.first_token(lease, now=0.0)
            held.append(lease)
    waits_for = {}
    for name, prefix in (("of-x", "x" * 4000), ("of-y", "y" * 4000)):
        waits_for[name] = wait(router, make_request(prefix, max_tokens=500, id=name)).gate[1]

    second = next(name for name in ("a", "b") if name != waits_for["of-x"])
    for lease in [lease for lease in held if lease.destination.spec.id == waits_for["of-y"]][:2]:
        done(router, lease, now=2.0)
    released = drain(router, now=2.0)

    assert waits_for == {"of-x": waits_for["of-x"], "of-y": second}
    assert [ticket.request.id for ticket, _ in released] == ["of-y"]


def test_a_later_request_for_the_same_endpoint_does_not_overtake() -> None:
    router = router_of("a", "b")
    leases = crowd(router, "x")
    full = wait(router, make_request("x", max_tokens=500, id="first")).gate[1]
    other = next(name for name in ("a", "b") if name != full)
    late = make_request("x", max_tokens=500, id="late")

    done(router, next(one for one in leases if one.destination.spec.id == full), now=1.0)

    assert router.queue.must_wait(late, full)
    assert not router.queue.must_wait(late, other)


def test_who_waits_for_an_endpoint_that_leaves_the_pool_goes_elsewhere() -> None:
    router = router_of("a", "b")
    crowd(router, "x")
    ticket = wait(router, make_request("x", max_tokens=500, id="waiting"))
    wanted = ticket.gate[1]
    document = router.document
    left = tuple(spec for spec in document.endpoints if spec.id != wanted)
    fresh = tuple(endpoint for endpoint in make_router(endpoint_dict("c")).document.endpoints)

    router.apply(
        type(document)(**_fields(document) | {"version": 2, "endpoints": left + fresh}), now=3.0
    )
    released = drain(router, now=3.0)

    assert [(one, lease.destination.spec.id) for one, lease in released] == [(ticket, "c")]


def test_who_waits_for_a_full_endpoint_that_is_kept_out_goes_elsewhere() -> None:
    router = router_of("a", "b")
    leases = crowd(router, "x")
    ticket = wait(router, make_request("x", max_tokens=500, id="waiting"))
    wanted, table = ticket.gate[1], router._known.table
    other = next(name for name in ("a", "b") if name != wanted)
    # Answers grow beyond what was expected: both are full, whoever asks.
    table.context_tokens += 100_000
    held_up = router.queue.release(now=2.0)

    for lease in [lease for lease in leases if lease.destination.spec.id == other]:
        done(router, lease, now=2.0)
    for _ in range(3):
        router.failed(wanted, "connect", now=2.0)
    table.context_tokens[table.row_of[other]] -= 100_000
    released = drain(router, now=2.0)

    assert held_up is None
    assert [(one, lease.destination.spec.id) for one, lease in released] == [(ticket, other)]


def test_whose_endpoint_another_document_forbids_to_its_tenant_chooses_again() -> None:
    router = router_of("a", "b")
    leases = crowd(router, "x")
    theirs = wait(router, make_request("x", max_tokens=500, id="theirs", tenant="bank"))
    ours = wait(router, make_request("x", max_tokens=500, id="ours"))
    wanted, our_gate = theirs.gate[1], ours.gate
    document = router.document
    places = tuple(
        msgspec.structs.replace(spec, jurisdiction="US" if spec.id == wanted else "KR")
        for spec in document.endpoints
    )
    bank = TenantSpec(tenant="bank", jurisdictions=("KR",))
    for lease in [lease for lease in leases if lease.destination.spec.id != wanted]:
        done(router, lease, now=2.0)
    table = router._known.table
    table.context_tokens[table.row_of[wanted]] += 100_000

    router.apply(
        msgspec.structs.replace(document, version=2, endpoints=places, tenants=(bank,)), now=3.0
    )
    our_gate_after = ours.gate
    destinations = {
        ticket.request.id: lease.destination.spec.id for ticket, lease in drain(router, now=3.0)
    }

    assert destinations["theirs"] != wanted
    assert our_gate_after == our_gate


def test_only_work_of_the_endpoint_that_somebody_waits_for_is_evicted_for_it() -> None:
    router = router_of("a", "b", admission=QUEUE | {"evict_sheddable": True})
    crowd(router, "x")
    full = wait(router, make_request("x", max_tokens=500, id="waiting")).gate[1]
    other = next(name for name in ("a", "b") if name != full)

    def running_at(name: str) -> InferenceRequest:
        request = make_request("z", id=f"at-{name}", priority=-1, forced=(name,))
        router.begin(request, router.decide(request, now=0.0, exclude=NOT_HERE), now=0.0)
        return request

    here, there = running_at(full), running_at(other)

    assert router.queue.victim([here, there], now=1.0) is None
    assert router.queue.victim([here, there], now=1001.0) is here
    assert router.queue.victim([there], now=1001.0) is None


def test_whoever_starves_is_helped_although_the_next_in_turn_cannot_be() -> None:
    router = router_of("a", "b", admission=QUEUE | {"evict_sheddable": True})
    for name, seconds in (("a", 1.0), ("b", None)):
        request = make_request("x", id=f"for-{name}", slo_ttft_seconds=seconds)
        router.queue.offer(request, body_bytes=1, now=0.0, endpoint=name)
    sheddable = make_request("z", id="running", priority=-1, forced=("b",))
    router.begin(sheddable, router.decide(sheddable, now=0.0, exclude=NOT_HERE), now=0.0)

    head = router.queue.order.head()

    assert head is not None
    assert head.request.id == "for-a"
    assert router.queue.victim([sheddable], now=1001.0) is sheddable


def test_nobody_overtakes_who_waits_for_an_endpoint_by_other_rules() -> None:
    router = router_of("a", "b")
    crowd(router, "x")
    full = wait(router, make_request("x", max_tokens=500, id="first")).gate[1]

    forced = make_request("x", max_tokens=500, id="forced", forced=(full,))

    assert router.queue.must_wait(forced, full)


def test_with_more_endpoints_than_one_search_looks_at_all_get_their_turn() -> None:
    count = MOST_LOOKS + 3
    router = router_of(*(f"e{number}" for number in range(count)))
    table = router._known.table
    names = sorted(table.ids)
    for position, name in enumerate(names):
        request = make_request("x", max_tokens=500, id=name, forced=(name,))
        router.queue.offer(request, body_bytes=1, now=float(position), endpoint=name)
    # Not full, but without room for one more.
    table.sequences[:] = 23.0
    table.sequences[table.row_of[names[-1]]] = 0.0

    first, second = (router.queue.release(now=100.0) for _ in range(2))

    assert first is None
    assert second is not None
    assert second[1].destination == names[-1]


def _fields(document: Any) -> dict[str, Any]:
    return {name: getattr(document, name) for name in document.__struct_fields__}
