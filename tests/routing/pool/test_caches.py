"""What a pool's router believes of caches: events where they come, else its own decisions."""

from typing import Any

import msgspec
import numpy as np
import pytest

from routing.core.block_masks import short_keys
from routing.core.kv_events import Batch, Cleared, Event, Removed, Stored
from routing.core.openai import parse_request
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.core.table import Instance
from routing.pool import caches
from routing.pool.caches import PEERS_HOPE_SECONDS
from routing.pool.knowledge import Knowledge
from routing.pool.router import PoolRouter
from routing.producers.event_health import HALF_LIFE_SECONDS
from routing.producers.hit_audit import WINDOW_REQUESTS
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router

BLOCK = 16


def tokens_of(number: int, blocks: int) -> list[int]:
    return [number * 1000 + position for position in range(blocks * BLOCK)]


def ask(tokens: list[int], **overrides: Any) -> InferenceRequest:
    """A completion whose prompt came as token ids."""
    body = msgspec.json.encode({"model": "granite", "prompt": tokens, "max_tokens": 8})
    identity = make_document(endpoint_dict("a")).prompt_identity
    parsed = parse_request("/v1/completions", body, identity=identity)
    return make_request(parsed=parsed, path="/v1/completions", **overrides)


def stored(tokens: list[int], first: int, last: int, **fields: Any) -> Stored:
    names = [2**50 + 7919 * tokens[BLOCK * (at + 1) - 1] for at in range(last)]
    parent = names[first - 1] if first else None
    return Stored(names[first:], parent, tokens[BLOCK * first : BLOCK * last], BLOCK, **fields)


def known_of(router: PoolRouter) -> Knowledge:
    return router._known


def instance_of(router: PoolRouter, name: str) -> Instance:
    table = known_of(router).table
    return table.instances[table.row_of[name]]


def publish(router: PoolRouter, name: str, sequence: int, *events: Event, now: float = 0.0) -> None:
    """One live batch, taken as a driver without replay does."""
    feed, instance = known_of(router).caches.events, instance_of(router, name)
    if "apply" in feed.arrived(instance, sequence, now=now):
        feed.take(instance, Batch(list(events), sent_at=0.0), now=now)


def two() -> PoolRouter:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    for name in "ab":
        known_of(router).caches.events.follow(instance_of(router, name), can_replay=False)
    return router


def hits(router: PoolRouter, request: InferenceRequest) -> list[float]:
    return known_of(router).hits(request).trusted.tolist()


def test_events_say_what_a_prompt_finds_where() -> None:
    router, text = two(), tokens_of(1, 10)

    publish(router, "a", 0, stored(text, 0, 10))
    publish(router, "b", 0, stored(text, 0, 4))

    # The block of the last token is always computed.
    assert hits(router, ask(text)) == [144.0, 64.0]
    assert hits(router, ask([*text, 1])) == [160.0, 64.0]


def test_a_request_in_flight_counts_until_it_is_over() -> None:
    router, request = two(), ask(tokens_of(1, 10))
    publish(router, "a", 0)
    publish(router, "b", 0)
    decision = router.decide(request, now=1.0)
    lease = router.begin(request, decision, now=1.0)

    assert max(hits(router, request)) == 144.0
    router.first_token(lease, now=1.5)
    assert max(hits(router, request)) == 144.0
    router.end(lease, now=2.0, outcome="ok", prompt_tokens=160, cached_tokens=0)

    # No event told of its blocks.
    assert hits(router, request) == [0.0, 0.0]


def test_without_events_a_computed_prompt_is_believed_to_stay() -> None:
    router = make_router(endpoint_dict("a"))
    request = ask(tokens_of(1, 10))
    lease = router.begin(request, router.decide(request, now=1.0), now=1.0)
    router.first_token(lease, now=1.5)

    router.end(lease, now=2.0, outcome="ok", prompt_tokens=160, cached_tokens=0)

    assert hits(router, request) == [144.0]


def test_a_prompt_of_text_is_believed_also_where_events_come() -> None:
    router, request = two(), make_request()
    publish(router, "a", 0)
    publish(router, "b", 0)
    lease = router.begin(request, router.decide(request, now=1.0), now=1.0)
    router.first_token(lease, now=1.5)

    router.end(lease, now=2.0, outcome="ok", prompt_tokens=1500, cached_tokens=0)

    assert max(hits(router, request)) > 1000


def test_lost_events_make_trust_fade_and_then_beliefs_take_over() -> None:
    router, text = two(), tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10))
    publish(router, "b", 0)
    publish(router, "a", 5, now=10.0)

    for age, share in [(0.0, 0.5), (HALF_LIFE_SECONDS, 0.25)]:
        known_of(router).caches.refresh(known_of(router).table, now=10.0 + age)
        assert hits(router, ask(text)) == [144.0 * share, 0.0]

    known_of(router).caches.refresh(known_of(router).table, now=10.0 + 5 * HALF_LIFE_SECONDS)
    assert hits(router, ask(text)) == [0.0, 0.0]
    request = ask(text)
    lease = router.begin(request, router.decide(request, now=400.0), now=400.0)
    row = lease.destination.row
    router.first_token(lease, now=400.5)
    router.end(lease, now=401.0, outcome="ok", prompt_tokens=160, cached_tokens=0)
    if lease.destination.spec.id == "a":
        assert hits(router, request)[row] == 144.0


def test_one_publishers_trouble_leaves_the_others_alone() -> None:
    router, text = two(), tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10))
    publish(router, "b", 0, stored(text, 0, 10))

    known_of(router).caches.events.undecodable(instance_of(router, "a"), now=5.0)
    known_of(router).caches.refresh(known_of(router).table, now=5.0)

    assert hits(router, ask(text)) == [72.0, 144.0]
    exact = known_of(router).hits(ask(text)).is_exact
    assert exact is not None
    assert exact.tolist() == [False, True]


@pytest.mark.lesson("X03")
def test_a_restart_is_noticed_once_by_whoever_sees_it_first() -> None:
    router, old, new = two(), tokens_of(1, 10), tokens_of(2, 10)
    publish(router, "a", 0, stored(old, 0, 10))
    router.observe("a", EngineSignals(process_start=100.0), now=1.0)
    publish(router, "a", 1)

    publish(router, "a", 0, stored(new, 0, 10), now=5.0)
    router.observe("a", EngineSignals(process_start=200.0), now=6.0)

    assert (hits(router, ask(old)), hits(router, ask(new))) == ([0.0, 0.0], [144.0, 0.0])

    router.observe("a", EngineSignals(process_start=300.0), now=100.0)

    assert hits(router, ask(new)) == [0.0, 0.0]


def test_a_cache_that_we_emptied_is_empty_at_once() -> None:
    router, text = two(), tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10))

    known_of(router).caches.reset(instance_of(router, "a"))

    assert hits(router, ask(text)) == [0.0, 0.0]


def test_an_engine_that_clears_its_cache_is_known_again_after_a_gap() -> None:
    router, text = two(), tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10))
    publish(router, "a", 5, now=1.0)

    publish(router, "a", 6, Cleared(), now=2.0)
    publish(router, "a", 7, stored(text, 0, 5), now=3.0)

    assert known_of(router).caches.events.is_exact(instance_of(router, "a"))
    assert hits(router, ask(text)) == [80.0, 0.0]


@pytest.mark.lesson("W09")
def test_the_engines_own_block_size_counts() -> None:
    router = make_router(endpoint_dict("a", block_size_tokens=16))
    known_of(router).caches.events.follow(instance_of(router, "a"), can_replay=False)
    text = tokens_of(1, 20)
    publish(router, "a", 0, Stored([2**51, 2**52], None, text[:256], 128))
    router.observe("a", EngineSignals(block_size_tokens=128), now=0.0)

    assert hits(router, ask(text)) == [256.0]
    assert hits(router, ask(text[:200])) == [128.0]
    assert hits(router, ask(text[:128])) == [0.0]


@pytest.mark.parametrize(
    ("stated", "trusted", "load"),
    [
        pytest.param(1e-5, 160.0, 64e-5, id="stated"),
        pytest.param(None, 96.0, 0.0, id="unknown-gives-no-credit"),
    ],
)
def test_tokens_in_slower_memory_cost_their_load(
    stated: float | None, trusted: float, load: float
) -> None:
    tier = {"medium": "CPU"} | ({} if stated is None else {"seconds_per_token": stated})
    router = make_router(endpoint_dict("a", tiers=[tier]))
    known_of(router).caches.events.follow(instance_of(router, "a"), can_replay=False)
    text = tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10), stored(text, 4, 8, medium="CPU"))
    gone = stored(text, 4, 8).block_hashes

    publish(router, "a", 1, Removed(gone, medium="GPU"))

    found = known_of(router).hits(ask([*text, 5]))
    assert found.trusted.tolist() == [trusted]
    assert found.load_seconds is not None
    np.testing.assert_allclose(found.load_seconds, [load])


def test_a_load_time_is_learned_from_what_a_first_token_took_longer() -> None:
    router = make_router(endpoint_dict("a"))
    known = known_of(router)
    known.caches.events.follow(instance_of(router, "a"), can_replay=False)
    text = tokens_of(1, 40)
    publish(router, "a", 0, stored(text, 0, 40, medium="CPU"))
    request = ask([*text, *tokens_of(3, 1)])
    assert hits(router, request) == [0.0]

    lease = router.begin(request, router.decide(request, now=0.0), now=0.0)
    router.first_token(lease, now=0.1)
    router.end(lease, now=0.2, outcome="ok", prompt_tokens=656, cached_tokens=640)

    found = known.hits(request)
    assert found.trusted[0] > 0
    assert found.load_seconds is not None
    assert 0.02 < found.load_seconds[0] < 0.1


def test_what_peers_hope_for_ends_where_events_would_tell() -> None:
    router, request = two(), ask(tokens_of(1, 10))
    publish(router, "a", 0)
    known = known_of(router)
    keys = known.caches.hope(instance_of(router, "b"), request.parsed, lease=99, now=0.0)
    known.caches.withdraw(instance_of(router, "b"), request.parsed, lease=99)

    known.caches.hear_hope(instance_of(router, "a"), keys, lease=-5, now=0.0)
    assert hits(router, request) == [144.0, 0.0]
    known.caches.refresh(known.table, now=PEERS_HOPE_SECONDS + 1)

    assert hits(router, request) == [0.0, 0.0]


def test_what_more_peers_hope_for_ends_the_oldest_hope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MOST_PEERS_HOPES", 1)
    router, first, second = two(), ask(tokens_of(1, 10)), ask(tokens_of(2, 10))
    publish(router, "a", 0)
    known, instance = known_of(router), instance_of(router, "a")

    for lease, request in ((-5, first), (-6, second)):
        keys = short_keys(request.parsed.block_keys)
        known.caches.hear_hope(instance, keys, lease=lease, now=0.0)

    assert hits(router, first) == [0.0, 0.0]
    assert hits(router, second) == [144.0, 0.0]


def test_another_identity_of_prompts_forgets_everything() -> None:
    router, text = two(), tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10))
    before = known_of(router).caches.events.generation

    document = make_document(
        endpoint_dict("a"), endpoint_dict("b"), version=2, prompt_identity={"block_tokens": 32}
    )
    router.apply(document, now=1.0)

    assert hits(router, ask(text)) == [0.0, 0.0]
    assert known_of(router).caches.events.generation == before + 1
    assert len(known_of(router).caches.blocks) == 0


def test_an_instance_that_leaves_the_document_leaves_no_blocks() -> None:
    router, text = two(), tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10))

    router.apply(make_document(endpoint_dict("b"), version=2), now=1.0)

    assert len(known_of(router).caches.blocks) == 0
    assert hits(router, ask(text)) == [0.0]


@pytest.mark.lesson("X13")
def test_predicted_and_real_rates_are_shown_per_endpoint() -> None:
    router, text = two(), tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10))
    publish(router, "b", 0)
    for turn in range(5):
        request = ask(text, id=f"r{turn}")
        decision = router.decide(request, now=float(turn))
        assert decision.destination == "a"
        lease = router.begin(request, decision, now=float(turn))
        router.first_token(lease, now=turn + 0.1)
        router.end(lease, now=turn + 0.2, outcome="ok", prompt_tokens=160, cached_tokens=72)

    endpoint = router.snapshot(now=9.0)["endpoints"][0]

    assert endpoint["hits"] == {"predicted_rate": 0.9, "real_rate": 0.45, "requests": 5}
    assert endpoint["trust"] < 1.0
    assert endpoint["events"]["blocks"] == 10


def test_engine_counters_stand_in_for_usage_without_cached_tokens() -> None:
    router, text = two(), tokens_of(1, 10)
    publish(router, "a", 0, stored(text, 0, 10))
    publish(router, "b", 0)
    counters = EngineSignals(prefix_queries_total=1000.0, prefix_hits_total=0.0)
    router.observe("a", counters, now=0.0)
    lease = router.begin(ask(text), router.decide(ask(text), now=0.0), now=0.0)
    router.end(lease, now=0.1, outcome="ok", prompt_tokens=160, cached_tokens=0)
    router.observe("a", counters, now=0.2)
    for turn in range(WINDOW_REQUESTS):
        request = ask(text, id=f"r{turn}")
        lease = router.begin(request, router.decide(request, now=1.0), now=1.0)
        router.first_token(lease, now=1.1)
        router.end(lease, now=1.2, outcome="ok", prompt_tokens=160)
    before = known_of(router).table.trust[0]

    found = EngineSignals(
        prefix_queries_total=1000.0 + 160 * (WINDOW_REQUESTS + 1), prefix_hits_total=0.0
    )
    router.observe("a", found, now=2.0)

    assert known_of(router).table.trust[0] < before
    rates = known_of(router).caches.rates(instance_of(router, "a"))
    assert rates is not None
    assert rates["real_rate"] == 0.0


@pytest.mark.lesson("W10")
def test_an_endpoints_prefixes_are_listed_without_text() -> None:
    router, one, other = two(), tokens_of(1, 10), tokens_of(2, 6)
    publish(router, "a", 0, stored(one, 0, 10), stored(other, 0, 2))
    publish(router, "b", 0)
    for text in (one, other):
        request = ask(text)
        lease = router.begin(request, router.decide(request, now=1.0), now=1.0)
        router.end(lease, now=1.0, outcome="error")
    known = known_of(router)

    found = known.caches.prefixes(instance_of(router, "a"), count=10, now=3.0)

    assert [line["held_tokens"] for line in found] == [160, 32]
    assert [line["prompt_tokens"] for line in found] == [160, 96]
    assert all(set(line["prefix"]) <= set("0123456789abcdef") for line in found)
    assert known.caches.prefixes(instance_of(router, "b"), count=10, now=3.0) == []


def test_keys_of_the_last_prompt_are_not_taken_for_another_ones() -> None:
    router = two()
    one, other = ask(tokens_of(1, 4)), ask(tokens_of(2, 4))
    known_of(router).caches.hope(instance_of(router, "a"), one.parsed, lease=1, now=0.0)
    known_of(router).caches.hope(instance_of(router, "b"), other.parsed, lease=2, now=0.0)

    found = [hits(router, request) for request in (one, other, one)]

    assert found == [[48.0, 0.0], [0.0, 48.0], [48.0, 0.0]]
