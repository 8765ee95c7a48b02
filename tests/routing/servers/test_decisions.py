"""The ring of decisions: sampled, bounded, and each with its outcome."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from routing.core.decision import Decision, Refusal
from routing.core.document import Recording
from routing.servers.decisions import MOST_KEYS, PLAIN_PER_SECOND, DecisionRing
from tests.routing.pool.builders import endpoint_dict, make_request, make_router

EVERY = Recording(sample_rate=1.0)


def make_decision(number: int, *, is_refused: bool = False, has_inputs: bool = True) -> Decision:
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
        inputs={} if has_inputs else None,
    )


def records(ring: DecisionRing, after: int = 0, **wanted: str) -> list[dict[str, Any]]:
    return [json.loads(record) for record in ring.after(after, limit=1000, **wanted)]


def ids(ring: DecisionRing, after: int = 0) -> list[str]:
    return [record["id"] for record in records(ring, after)]


def test_ordinary_decisions_are_sampled_by_the_rate_and_bounded_by_time() -> None:
    ring = DecisionRing(per_second=10.0)
    few = Recording(sample_rate=0.0)

    kept = [
        (number, keep)
        for number in range(100)
        if (keep := _decide(ring, number, recording=EVERY)) == "always"
    ]
    none = {
        ring.keep(few, tenant_rate=None, is_special=False, now=2.0 + number) for number in range(20)
    }

    assert 9 <= len(kept) <= 11
    assert len(ids(ring)) == len(kept)
    assert none == {"refusals"}


def _decide(ring: DecisionRing, number: int, *, recording: Recording) -> Any:
    now = number * 0.01
    keep = ring.keep(recording, tenant_rate=None, is_special=False, now=now)
    decision = make_decision(number, has_inputs=keep == "always")
    ring.offer(decision, attempt=1, now=now, unix_now=0.0)
    return keep


def test_a_tenant_has_its_own_rate() -> None:
    ring = DecisionRing()

    keeps = [
        ring.keep(EVERY, tenant_rate=rate, is_special=False, now=0.0) for rate in (0.0, 1.0, None)
    ]

    assert keeps == ["refusals", "always", "always"]


def test_refusals_and_retries_are_always_kept() -> None:
    ring = DecisionRing(per_second=0.001)
    ring.offer(make_decision(0), attempt=1, now=0.0, unix_now=0.0)

    for number in (1, 2):
        refused = make_decision(number, is_refused=True, has_inputs=False)
        ring.offer(refused, attempt=1, now=0.0, unix_now=0.0)
    ring.offer(make_decision(3, has_inputs=False), attempt=2, now=0.0, unix_now=0.0)
    ring.offer(make_decision(4, has_inputs=False), attempt=1, now=0.0, unix_now=0.0)

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
    assert ring.find("d-1") is None
    assert ring.prefix_of("d-1") is None


def test_the_ring_is_bounded_in_bytes() -> None:
    one = DecisionRing()
    one.offer(make_decision(10), attempt=1, now=0.0, unix_now=0.0)
    (record,) = one.after(0, limit=1)
    ring = DecisionRing(kept_bytes=3 * len(record) + 10)

    for number in range(10, 20):
        ring.offer(make_decision(number), attempt=2, now=0.0, unix_now=0.0)

    assert ids(ring)[-1] == "d-19"
    assert sum(map(len, ring.after(0, limit=100))) <= 3 * len(record) + 10


def test_in_a_storm_of_refusals_some_are_recorded_with_candidates_and_most_are_counted() -> None:
    ring = DecisionRing(per_second=10.0)

    for number in range(1000):
        decision = make_decision(number, is_refused=True)
        ring.offer(decision, attempt=1, now=number * 0.0005, unix_now=0.0)

    detailed = [record["id"] for record in records(ring) if record["candidates"] is not None]
    assert 5 <= len(detailed) <= 7
    assert len(records(ring)) == len(detailed) + PLAIN_PER_SECOND
    assert ring.left_out == 1000 - len(records(ring))


@pytest.mark.lesson("T05")
def test_a_recorded_decision_gets_its_outcome_as_a_line_of_its_own() -> None:
    ring = DecisionRing()
    decision = make_decision(1)
    ring.offer(decision, attempt=1, now=0.0, unix_now=0.0, document_hash="abc")
    read = ring.last_number

    ring.ended(decision, {"outcome": "ok", "ttft_seconds": 0.2}, now=1.0, unix_now=1.0)
    ring.ended(decision, {"outcome": "ok"}, now=2.0, unix_now=2.0)

    (later,) = records(ring, after=read)
    assert later["outcome_of"] == "d-1"
    found = ring.find("d-1")
    assert found is not None
    assert found["outcome"] == {"outcome": "ok", "ttft_seconds": 0.2}
    assert found["document_hash"] == "abc"


def test_a_decision_whose_request_failed_is_recorded_afterwards() -> None:
    ring = DecisionRing()
    failed, answered = make_decision(1, has_inputs=False), make_decision(2, has_inputs=False)

    ring.ended(failed, {"outcome": "error", "status": 502}, now=0.0, unix_now=0.0)
    ring.ended(answered, {"outcome": "ok", "status": 200}, now=0.0, unix_now=0.0)

    kinds = [record.get("id") or record["outcome_of"] for record in records(ring)]
    assert kinds == ["d-1", "d-1"]


def test_lines_are_found_by_pool_tenant_and_kind() -> None:
    ring, router = DecisionRing(), make_router(endpoint_dict("a"))
    for number, tenant in enumerate(("x", "y")):
        request = make_request(id=f"r{number}", tenant=tenant)
        decision = router.decide(request, now=0.0, keep="always")
        ring.offer(decision, attempt=2, now=float(number), unix_now=0.0)
    ring.ended(decision, {"outcome": "ok"}, now=2.0, unix_now=0.0)

    assert len(records(ring, tenant="x")) == 1
    assert len(records(ring, tenant="y", kind="chosen")) == 1
    assert len(records(ring, kind="outcome")) == 1
    assert records(ring, pool="other") == []
    prefix = ring.prefix_of(decision.id)
    assert prefix is not None
    assert prefix.keys.tolist() == decision.request.parsed.block_keys.tolist()  # type: ignore[union-attr]


def test_a_record_of_a_long_prompt_keeps_its_first_keys_and_not_all_of_them() -> None:
    ring = DecisionRing()
    plain = make_request()
    keys = np.arange(1, 3 * MOST_KEYS, dtype=np.uint64)
    parsed = msgspec.structs.replace(plain.parsed, block_keys=keys)
    request = msgspec.structs.replace(plain, parsed=parsed)
    decision = msgspec.structs.replace(make_decision(1), request=request)

    ring.offer(decision, attempt=1, now=0.0, unix_now=0.0)

    prefix = ring.prefix_of("d-1")
    assert prefix is not None
    assert len(prefix.keys) == MOST_KEYS
    assert prefix.keys.base is None
