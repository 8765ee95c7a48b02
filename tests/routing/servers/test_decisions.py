"""The ring of sampled decisions."""

import json
from typing import Any

from routing.core.decision import Decision, Refusal
from routing.servers.decisions import DecisionRing


def make_decision(number: int, *, is_refused: bool = False) -> Decision:
    refusal = Refusal(status=503, code="no-capacity", message="None.") if is_refused else None
    return Decision(
        id=f"d-{number}",
        request_id=f"r-{number}",
        policy="random",
        pool="p",
        document_version=1,
        decided_at=float(number),
        destination=None if is_refused else "a",
        refusal=refusal,
    )


def records(ring: DecisionRing, after: int = 0) -> list[dict[str, Any]]:
    return [json.loads(record) for record in ring.after(after, limit=100)]


def ids(ring: DecisionRing, after: int = 0) -> list[str]:
    return [record["id"] for record in records(ring, after)]


def test_ordinary_decisions_are_sampled_by_time() -> None:
    ring = DecisionRing(per_second=10.0)

    for number in range(100):
        ring.offer(make_decision(number), attempt=1, now=number * 0.01, unix_now=0.0)

    assert 9 <= len(ids(ring)) <= 11


def test_refusals_and_retries_are_always_kept() -> None:
    ring = DecisionRing(per_second=0.001)
    ring.offer(make_decision(0), attempt=1, now=0.0, unix_now=0.0)

    for number in (1, 2):
        ring.offer(make_decision(number, is_refused=True), attempt=1, now=0.0, unix_now=0.0)
    ring.offer(make_decision(3), attempt=2, now=0.0, unix_now=0.0)
    ring.offer(make_decision(4), attempt=1, now=0.0, unix_now=0.0)

    assert ids(ring) == ["d-0", "d-1", "d-2", "d-3"]


def test_the_ring_is_bounded_and_numbers_go_on() -> None:
    ring = DecisionRing(kept=3)

    for number in range(10):
        ring.offer(make_decision(number, is_refused=True), attempt=1, now=0.0, unix_now=5.0)

    assert ids(ring) == ["d-7", "d-8", "d-9"]
    assert ids(ring, after=9) == ["d-9"]
    assert ring.last_number == 10
    assert len(ring.after(0, limit=1)) == 1
    assert records(ring)[0]["recorded_at"] == 5.0


def test_the_ring_is_bounded_in_bytes() -> None:
    one = DecisionRing()
    one.offer(make_decision(10), attempt=1, now=0.0, unix_now=0.0)
    (record,) = one.after(0, limit=1)
    ring = DecisionRing(kept_bytes=3 * len(record) + 10)

    for number in range(10, 20):
        ring.offer(make_decision(number), attempt=2, now=0.0, unix_now=0.0)

    assert ids(ring)[-1] == "d-19"
    assert sum(map(len, ring.after(0, limit=100))) <= 3 * len(record) + 10


def test_in_a_storm_of_refusals_only_some_are_recorded_with_their_candidates() -> None:
    ring = DecisionRing(per_second=10.0)

    for number in range(50):
        decision = make_decision(number, is_refused=True)
        ring.offer(decision, attempt=1, now=number * 0.01, unix_now=0.0)
    ring.offer(make_decision(50), attempt=1, now=0.5, unix_now=0.0)

    detailed = [record["id"] for record in records(ring) if record["candidates"] is not None]
    assert len(records(ring)) == 51
    assert 5 <= len(detailed) <= 7
    assert detailed[-1] == "d-50"
