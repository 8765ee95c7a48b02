"""Limits of tenants and keys over the wait, all attempts and the end."""

import pytest

from routing.core.decision import Refusal
from tests.routing.pool.builders import endpoint_dict, make_document
from tests.routing.pool.waits import LONG, QUEUE, asked, done, enter, fill, router_of, send


def test_limits_are_held_over_the_wait_and_all_attempts() -> None:
    tenants = [{"tenant": "tenant-a", "concurrency": 1}]
    router = router_of("a", "b", tenants=tenants)
    request = asked()
    router.queue.reserve(request, now=0.0)

    first = router.decide(request, now=0.0)
    lease = router.begin(request, first, now=0.0)
    router.end(lease, now=0.1, outcome="error")
    between = router.decide(asked(), now=0.1).refusal
    retry = router.decide(request, now=0.1, exclude=frozenset({first.destination or ""}))
    router.end(router.begin(request, retry, now=0.1), now=0.2, outcome="ok")
    still = router.decide(asked(), now=0.2).refusal
    router.queue.settle(request)

    assert isinstance(between, Refusal)
    assert between.rule == "limit:tenant.concurrency"
    assert retry.destination is not None
    assert still is not None
    assert router.decide(asked(), now=0.2).refusal is None


def test_tokens_are_settled_by_what_the_engine_counted() -> None:
    tenants = [{"tenant": "tenant-a", "tokens_per_minute": 100_000}]
    router = router_of("a", tenants=tenants)
    request = asked()
    lease = router.begin(request, router.decide(request, now=0.0), now=0.0)
    reserved = router.queue.rates_left("tenant-a", "key-a", now=0.0)[1]

    router.end(lease, now=0.0, outcome="ok", prompt_tokens=400, completion_tokens=100)
    settled = router.queue.rates_left("tenant-a", "key-a", now=0.0)[1]

    assert reserved is not None
    assert settled is not None
    assert reserved.remaining < 100_000 - LONG.parsed.prompt_tokens
    assert settled.remaining == 99_500


def test_an_aborted_stream_costs_what_was_seen_of_it() -> None:
    tenants = [{"tenant": "tenant-a", "tokens_per_minute": 100_000}]
    router = router_of("a", tenants=tenants)
    before, after = asked(), asked()
    unanswered = router.begin(before, router.decide(before, now=0.0), now=0.0)
    router.end(unanswered, now=0.0, outcome="aborted")
    lease = router.begin(after, router.decide(after, now=0.0), now=0.0)
    router.first_token(lease, now=0.0)
    router.tokens(lease, 10, now=0.0)

    router.end(lease, now=0.0, outcome="aborted")

    left = router.queue.rates_left("tenant-a", "key-a", now=0.0)[1]
    assert left is not None
    assert left.remaining == 100_000 - LONG.parsed.prompt_tokens - 10


def test_a_lease_of_a_dead_instance_gives_its_limits_back_when_its_driver_ends_it() -> None:
    tenants = [{"tenant": "tenant-a", "concurrency": 1}]
    router = router_of("a", tenants=tenants)
    request = asked()
    lease = router.begin(request, router.decide(request, now=0.0), now=0.0)
    other = make_document(
        endpoint_dict("a", instance="2"), admission=QUEUE, tenants=tenants, version=2
    )
    router.apply(other, now=1.0)

    router.end(lease, now=1.0, outcome="error")
    router.end(lease, now=1.0, outcome="error")

    assert router.decide(asked(), now=1.0).refusal is None


@pytest.mark.lesson("T14")
def test_a_refusal_names_the_level_and_the_key_that_decided() -> None:
    key = {
        "id": "key-a",
        "sha256": "0" * 64,
        "tenant": "tenant-a",
        "project": "p",
        "concurrency": 1,
    }
    router = router_of("a", keys=[key], tenants=[{"tenant": "tenant-a", "concurrency": 9}])
    send(router, asked())

    refusal = router.decide(asked(), now=0.0).refusal

    assert refusal is not None
    assert refusal.rule == "limit:key.concurrency"
    assert "'key-a'" in refusal.message


def test_a_failed_attempt_is_no_refund_of_a_turn_and_nothing_is_kept_of_who_left() -> None:
    router = router_of("a", "b")
    leases = fill(router)
    ticket = enter(router)
    for lease in leases:
        done(router, lease, now=0.1)
    found = router.queue.release(now=0.1)
    assert found is not None
    first = router.begin(ticket.request, found[1], now=0.1)
    clock = router.queue.order._bands[0]._finished["tenant-a"]

    router.end(first, now=0.2, outcome="error")
    after_failure = router.queue.order._bands[0]._finished["tenant-a"]
    retry = router.decide(ticket.request, now=0.2, exclude=frozenset({first.destination.spec.id}))
    second = router.begin(ticket.request, retry, now=0.2)
    router.first_token(second, now=0.3)
    router.end(second, now=0.4, outcome="ok", prompt_tokens=100, completion_tokens=10)
    after_answer = router.queue.order._bands[0]._finished["tenant-a"]
    router.queue.settle(ticket.request)

    assert after_failure == clock
    assert after_answer == clock - ticket.tokens + 110
    assert router.queue.order._released == {}
