"""Two routers of one pool tell each other what they do."""

from typing import Any

import pytest

from routing.core.lease import Lease
from routing.core.peer_messages import Packet, decode, encode
from routing.core.signals import EngineSignals
from routing.pool.peering import ROUND_SECONDS
from routing.pool.router import PoolRouter
from routing.producers.peer_news import MOST_KEYS
from routing.producers.peers import GONE_SECONDS
from tests.routing.pool.builders import endpoint_dict, make_document, make_request

MILLISECOND = 0.001


def two(**changes: Any) -> tuple[PoolRouter, PoolRouter]:
    document = make_document(*(endpoint_dict(name) for name in "abcd"), **changes)
    routers = PoolRouter(document, seed=1, now=0.0), PoolRouter(document, seed=2, now=0.0)
    for name, router in zip(("r1", "r2"), routers, strict=True):
        router.peers.join(node=name, epoch=1)
    return routers


def pass_on(sender: PoolRouter, receiver: PoolRouter, *, now: float) -> list[Packet]:
    """What a driver does, over a wire."""
    packets = [decode(encode(packet)) for packet in sender.peers.tell(now=now)]
    for packet in packets:
        receiver.peers.hear(packet, now=now)
    receiver.peers.settle(now=now)
    return packets


def send(router: PoolRouter, text: str, *, now: float) -> Lease:
    request = make_request(text)
    return router.begin(request, router.decide(request, now=now), now=now)


def load(router: PoolRouter, name: str, key: str = "peers_requests") -> int:
    endpoints = router.snapshot(now=0.0)["endpoints"]
    return next(one[key] for one in endpoints if one["id"] == name)


@pytest.mark.lesson("W15")
def test_routers_that_decide_in_turn_spread_over_the_endpoints_as_one_router_does() -> None:
    first, second = two()
    chosen = []
    for number in range(4):
        router, other = (first, second) if number % 2 else (second, first)
        now = number * MILLISECOND
        chosen.append(send(router, f"{number} " * 3000, now=now).destination.spec.id)
        pass_on(router, other, now=now)

    assert sorted(chosen) == ["a", "b", "c", "d"]


def test_a_lease_counts_at_the_peer_until_it_ends() -> None:
    first, second = two()
    lease = send(first, "hello", now=0.0)
    name = lease.destination.spec.id

    pass_on(first, second, now=0.0)
    during = load(second, name), load(second, name, "inflight_requests")
    first.end(lease, now=0.1, outcome="ok")
    pass_on(first, second, now=0.1)

    assert during == (1, 0)
    assert load(second, name) == 0


def test_nothing_is_told_between_rounds_while_nothing_changes() -> None:
    first, _ = two()
    first.peers.tell(now=0.0)

    assert first.peers.tell(now=ROUND_SECONDS / 2) == []
    assert len(first.peers.tell(now=ROUND_SECONDS)) == 1


@pytest.mark.lesson("S02")
def test_a_lost_end_is_told_again() -> None:
    first, second = two()
    lease = send(first, "hello", now=0.0)
    pass_on(first, second, now=0.0)
    first.end(lease, now=0.1, outcome="ok")
    first.peers.tell(now=0.1)

    pass_on(first, second, now=0.1 + ROUND_SECONDS)

    assert load(second, lease.destination.spec.id) == 0


def test_a_prompt_that_began_here_is_a_hit_for_its_sibling_there() -> None:
    first, second = two()
    lease = send(first, "shared " * 2000, now=0.0)

    pass_on(first, second, now=0.0)
    sibling = second.decide(make_request("shared " * 2000), now=0.0)

    assert sibling.destination == lease.destination.spec.id
    assert sibling.predicted.indexed_tokens > 0


def test_a_prompt_that_was_never_computed_is_taken_back() -> None:
    first, second = two()
    lease = send(first, "shared " * 2000, now=0.0)
    pass_on(first, second, now=0.0)

    first.end(lease, now=0.1, outcome="error")
    pass_on(first, second, now=0.1)

    sibling = second.decide(make_request("shared " * 2000), now=0.1)
    assert sibling.predicted.indexed_tokens == 0


def test_of_a_very_long_prompt_the_beginning_is_told_in_packets_of_bounded_size() -> None:
    first, second = two()
    chunk_bytes = first.document.prompt_identity.chunk_bytes
    send(first, "x" * chunk_bytes * 2 * MOST_KEYS, now=0.0)

    packets = pass_on(first, second, now=0.0)

    assert max(len(encode(packet)) for packet in packets) < 1300
    assert sum(len(part.keys) for packet in packets for part in packet.begun) == 8 * MOST_KEYS


@pytest.mark.parametrize("count", [1, 100])
def test_loads_of_many_endpoints_come_in_packets_of_bounded_size(count: int) -> None:
    document = make_document(*(endpoint_dict(f"e{number}") for number in range(count)))
    router = PoolRouter(document, seed=1, now=0.0)
    router.peers.join(node="r1", epoch=1)
    for number in range(count):
        send(router, f"{number}", now=0.0)

    packets = router.peers.tell(now=0.0)

    assert max(len(encode(packet)) for packet in packets) < 1300


def test_a_dead_endpoint_is_known_to_all_and_so_is_its_return() -> None:
    first, second = two()
    first.failed("a", "connect", now=0.0)
    pass_on(first, second, now=0.0)
    request = make_request("hello")
    during = {second.decide(request, now=0.1).destination for _ in range(20)}

    lease = first.begin(request, first.decide(request, now=5.0, exclude=frozenset("bcd")), now=5.0)
    first.end(lease, now=5.1, outcome="ok")
    pass_on(first, second, now=5.1)

    assert "a" not in during
    state = second.snapshot(now=5.1)["endpoints"][0]["breaker"]["state"]
    assert (lease.destination.spec.id, state) == ("a", "closed")


def test_what_peers_have_running_is_not_taken_for_other_peoples_traffic() -> None:
    first, second = two()
    leases = [send(first, "same " * 500, now=0.0) for _ in range(3)]
    busiest = leases[0].destination.spec.id
    count = sum(lease.destination.spec.id == busiest for lease in leases)
    pass_on(first, second, now=0.0)

    for now in (0.1, 0.2):
        second.observe(busiest, EngineSignals(running=count + 2, waiting=0), now=now)

    others = {one["id"]: one["others"] for one in second.snapshot(now=0.2)["endpoints"]}
    assert others[busiest] == 2


def test_a_peer_that_ends_or_is_silent_leaves_no_load() -> None:
    first, second = two()
    name = send(first, "hello", now=0.0).destination.spec.id
    pass_on(first, second, now=0.0)

    second.peers.settle(now=GONE_SECONDS)
    silent = load(second, name)
    pass_on(first, second, now=GONE_SECONDS)
    again = load(second, name)
    second.peers.hear(first.peers.farewell(), now=GONE_SECONDS)
    second.peers.settle(now=GONE_SECONDS)

    assert (silent, again, load(second, name)) == (0, 1, 0)


def test_a_router_alone_tells_nothing_and_keeps_nothing() -> None:
    router = PoolRouter(make_document(endpoint_dict("a")), seed=1, now=0.0)
    send(router, "hello", now=0.0)
    router.failed("a", "connect", now=0.0)

    router.peers.join(node="r1", epoch=1)

    packets = router.peers.tell(now=0.0)
    assert all(packet.begun == () and packet.breakers == () for packet in packets)


def test_a_limit_holds_for_two_routers_together() -> None:
    tenants = [{"tenant": "tenant-a", "concurrency": 2, "tokens_per_minute": 100_000}]
    first, second = two(tenants=tenants)
    pass_on(first, second, now=0.0)
    leases = [send(first, f"{number}", now=0.1) for number in range(2)]

    pass_on(first, second, now=0.5)
    during = second.decide(make_request("x"), now=0.5).refusal
    for lease in leases:
        first.end(lease, now=0.6, outcome="ok", prompt_tokens=30_000, completion_tokens=5_000)
    pass_on(first, second, now=1.0)
    after = second.decide(make_request("x"), now=1.0).refusal
    left = second.queue.rates_left("tenant-a", "key-a", now=1.0)[1]

    assert during is not None
    assert during.rule == "limit:tenant.concurrency"
    assert after is None
    assert left is not None
    assert 30_000 <= left.remaining < 32_000


def test_a_lost_use_of_a_limit_is_told_again_and_a_quiet_limit_is_not() -> None:
    first, second = two(tenants=[{"tenant": "tenant-a", "concurrency": 1}])
    pass_on(first, second, now=0.0)
    lease = send(first, "x", now=0.1)
    first.peers.tell(now=0.5)
    pass_on(first, second, now=1.0)
    during = second.decide(make_request("y"), now=1.0).refusal
    first.end(lease, now=1.1, outcome="ok")
    first.peers.tell(now=1.5)

    pass_on(first, second, now=2.0)
    quiet = first.peers.tell(now=10.0)

    assert during is not None
    assert second.decide(make_request("y"), now=2.0).refusal is None
    assert all(packet.tenants == () for packet in quiet)


def test_uses_of_many_limits_come_in_packets_of_bounded_size() -> None:
    tenants = [{"tenant": "t" * 190 + str(number), "concurrency": 5} for number in range(100)]
    document = make_document(endpoint_dict("a"), tenants=tenants)
    router = PoolRouter(document, seed=1, now=0.0)
    router.peers.join(node="n" * 40, epoch=2**40)
    for tenant in tenants:
        request = make_request("x", tenant=tenant["tenant"])
        router.begin(request, router.decide(request, now=0.0), now=0.0)

    packets = router.peers.tell(now=0.0)

    assert sum(len(packet.tenants) for packet in packets) == 100
    assert max(len(encode(packet)) for packet in packets) < 1300
