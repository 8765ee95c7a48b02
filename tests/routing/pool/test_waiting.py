"""Waiting requests against the gate and the limits, in virtual time."""

from typing import Any

import pytest

from routing.core.decision import Refusal
from routing.producers.fair_share import Ticket
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router
from tests.routing.pool.waits import QUEUE, asked, done, drain, enter, fill, router_of, send


def test_over_the_gate_a_request_is_stopped_with_the_phase_that_is_short() -> None:
    router = router_of("a")
    leases = fill(router)

    stopped = router.decide(asked(), now=0.0).refusal

    assert len(leases) == 2
    assert stopped is not None
    assert (stopped.status, stopped.code, stopped.rule) == (
        429,
        "pool-saturated",
        "saturation:prefill",
    )
    assert stopped.dropped_reason == "rejected-saturated"
    assert stopped.retry_after_seconds is not None


def test_a_pool_that_is_short_of_sequences_is_saturated_in_decode() -> None:
    router = make_router(
        endpoint_dict("a", max_sequences=2), admission=QUEUE | {"saturation_seconds": 0.05}
    )
    for turn in range(4):
        lease = send(router, make_request(f"{turn}", max_tokens=2000, id=f"r{turn}"))
        if lease is not None:
            router.first_token(lease, now=0.0)

    stopped = router.decide(make_request("x", max_tokens=2000), now=0.0).refusal

    assert stopped is not None
    assert stopped.rule == "saturation:decode"


@pytest.mark.parametrize(
    ("admission", "slo", "most"),
    [
        pytest.param({"queue_requests": 1, "saturation_seconds": 3}, {}, "3", id="stated"),
        pytest.param({"queue_requests": 1}, {"ttft_seconds": 1.5}, "1.5", id="slo"),
        pytest.param({"queue_requests": 1}, {}, "2", id="default"),
        pytest.param({"maximum_wait_seconds": 7}, {"ttft_seconds": 1}, "7", id="without-a-queue"),
        pytest.param(
            {"queue_requests": 1, "saturation_seconds": 9, "maximum_wait_seconds": 4},
            {},
            "4",
            id="never-above-the-maximum",
        ),
    ],
)
def test_the_gate_is_what_the_document_says_first(
    admission: dict[str, Any], slo: dict[str, Any], most: str
) -> None:
    router = router_of("a", admission=admission, slo=slo)
    fill(router)

    stopped = router.decide(asked(), now=0.0).refusal

    assert stopped is not None
    assert f"at most {most} s" in stopped.message


def test_as_many_go_as_fit_and_each_is_counted_before_the_next_is_priced() -> None:
    router = router_of("a", "b")
    leases = fill(router)
    tickets = [enter(router, id=f"w{number}") for number in range(20)]

    nobody = drain(router, now=0.1)
    done(router, leases[0], now=0.2)
    one_lease_less = drain(router, now=0.2)

    assert nobody == []
    assert [ticket for ticket, _ in one_lease_less] == tickets[:1]
    assert router.decide(asked(), now=0.2).refusal is not None


def test_everybody_gets_through_in_the_end_and_nothing_is_held() -> None:
    router = router_of("a", "b", tenants=[{"tenant": "tenant-a", "concurrency": 500}])
    running, now = fill(router), 0.0
    tickets = [enter(router, id=f"w{number}") for number in range(30)]

    seen: list[Ticket] = []
    while len(seen) < len(tickets):
        now += 0.2
        done(router, running.pop(0), now=now)
        for ticket, lease in drain(router, now=now):
            seen.append(ticket)
            running.append(lease)
    for lease in running:
        done(router, lease, now=now)

    assert seen == tickets
    assert router.leases_open == 0
    assert len(router.queue) == 0
    assert router._known.tenants.open_grants() == 0


def test_capacity_that_comes_free_is_told_only_while_somebody_waits() -> None:
    router, told = router_of("a"), list[str]()
    router.queue.on_capacity = lambda: told.append("look")
    leases = fill(router)

    done(router, leases[0], now=1.0)
    quiet = list(told)
    enter(router)
    done(router, leases[1], now=2.0)

    assert quiet == []
    assert len(told) >= 1


def test_another_document_with_more_endpoints_is_capacity_too() -> None:
    router, told = router_of("a"), list[str]()
    fill(router)
    enter(router)
    router.queue.on_capacity = lambda: told.append("look")

    names = (endpoint_dict("a"), endpoint_dict("b"))
    router.apply(make_document(*names, admission=QUEUE, version=2), now=1.0)

    assert told == ["look"]
    assert len(drain(router, now=1.0)) == 1


def test_who_waits_for_other_endpoints_is_not_held_up() -> None:
    tenants = [
        {"tenant": "kr", "jurisdictions": ["KR"]},
        {"tenant": "us", "jurisdictions": ["US"]},
    ]
    router = make_router(
        endpoint_dict("k"), endpoint_dict("u", jurisdiction="US"), tenants=tenants, admission=QUEUE
    )
    for tenant in ("kr", "us"):
        while send(router, asked(tenant=tenant)) is not None:
            pass
    enter(router, tenant="kr", priority=5)
    american = enter(router, tenant="us")
    lease = next(
        lease for lease in router._known.leases._open.values() if lease.destination.spec.id == "u"
    )

    done(router, lease, now=0.1)
    released = drain(router, now=0.1)

    assert [ticket for ticket, _ in released] == [american]
    assert not router.queue.must_wait(asked(tenant="us"))
    assert router.queue.must_wait(asked(tenant="kr"))


def test_a_pool_that_lost_its_endpoints_keeps_who_waits_until_their_time_is_over() -> None:
    router = router_of("a")
    fill(router)
    ticket = enter(router)
    router.apply(make_document(admission=QUEUE, version=2), now=1.0)

    released = router.queue.release(now=2.0)
    expired = router.queue.expire(now=30.0)

    assert released is None
    assert [each for each, _ in expired] == [ticket]
    refusal = expired[0][1]
    assert (refusal.status, refusal.dropped_reason) == (503, "rejected-no-endpoints")


def test_a_wait_that_is_over_while_endpoints_exist_is_429() -> None:
    router = router_of("a")
    fill(router)
    enter(router, queue_seconds=2.0)

    early, late = router.queue.expire(now=1.9), router.queue.expire(now=2.0)

    assert early == []
    refusal = late[0][1]
    assert (refusal.status, refusal.rule) == (429, "queue:ttl")
    assert refusal.dropped_reason == "rejected-ttl-expired"


def test_a_tenant_that_is_suspended_while_it_waits_is_refused() -> None:
    router = router_of("a")
    leases = fill(router)
    ticket = enter(router)
    tenants = [{"tenant": "tenant-a", "is_suspended": True}]
    document = make_document(endpoint_dict("a"), admission=QUEUE, tenants=tenants, version=2)
    router.apply(document, now=1.0)
    done(router, leases[0], now=1.0)

    found = router.queue.release(now=1.0)

    assert found is not None
    assert found[0] is ticket
    assert found[1].refusal is not None
    assert (found[1].refusal.status, found[1].refusal.code) == (403, "quota-exhausted")
    assert ticket.state == "refused"


def test_a_full_queue_is_429_with_the_longer_of_the_two_waits() -> None:
    router = router_of("a", admission=QUEUE | {"queue_requests": 1})
    fill(router)
    enter(router)
    gate = router.decide(asked(), now=0.0).refusal

    offered = router.queue.offer(asked(), body_bytes=1, now=0.0, stopped=gate)

    assert gate is not None
    assert offered.ticket is None
    refusal = offered.refusal
    assert refusal is not None
    assert (refusal.status, refusal.rule) == (429, "queue:queue_requests")
    assert refusal.retry_after_seconds == gate.retry_after_seconds


def test_closing_sends_everybody_away() -> None:
    router = router_of("a")
    fill(router)
    tickets = [enter(router) for _ in range(3)]
    refusal = Refusal(status=503, code="no-capacity", message="over", rule="draining")

    gone = router.queue.clear(refusal)

    assert [ticket for ticket, _ in gone] == tickets
    assert len(router.queue) == 0
    assert router.snapshot(now=0.0)["queue"]["totals"] == {"refused": 3}


@pytest.mark.lesson("W18")
def test_prompts_that_queue_close_the_gate_although_decode_is_fast() -> None:
    router = make_router(
        endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"), admission=QUEUE
    )
    for turn in range(30):
        send(router, make_request(f"{turn} " * 3000, id=f"r{turn}"))

    stopped = router.decide(make_request("another " * 3000), now=0.0).refusal

    assert stopped is not None
    assert stopped.rule == "saturation:prefill"
