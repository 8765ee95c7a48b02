"""Usage events and segments: the format that routers and the control plane share."""

import hashlib
from typing import Any

import msgspec
import pytest

from routing.core.usage import UsageEvent, UsageSegment, events_checksum, segment_of


def make_event(**overrides: Any) -> UsageEvent:
    values: dict[str, Any] = {
        "sequence": 1,
        "request_id": "r",
        "router": "r1",
        "pool": "chat",
        "document_version": 3,
        "policy": "consort",
        "tenant": "a",
        "project": "p",
        "key_id": "k",
        "model": "granite",
        "endpoint": "e",
        "instance": "1",
        "node": "n",
        "role": "both",
        "prefill_endpoint": None,
        "received_at": 1.0,
        "ended_at": 2.0,
        "outcome": "ok",
        "status": 200,
        "attempt": 1,
        "delivered": True,
        "stream": True,
        "prompt_tokens": 10,
        "cached_tokens": None,
        "completion_tokens": 5,
        "token_source": "engine",
        "ttft_seconds": 0.1,
        "tpot_seconds": None,
    }
    return UsageEvent(**(values | overrides))


def test_a_segment_spans_its_events() -> None:
    events = tuple(make_event(sequence=number) for number in (4, 5, 6))

    segment = segment_of("r1", events)

    assert (segment.first_sequence, segment.last_sequence) == (4, 6)
    assert segment.events == events


def test_a_segment_survives_the_wire_with_its_checksum() -> None:
    segment = segment_of("r1", (make_event(), make_event(sequence=2, outcome="refused")))

    read = msgspec.json.decode(msgspec.json.encode(segment), type=UsageSegment)

    assert read == segment
    assert events_checksum(read.events) == read.sha256


@pytest.mark.parametrize(
    "change", [{"completion_tokens": 6}, {"tenant": "b"}, {"cached_tokens": 0}, {"sequence": 2}]
)
def test_any_change_of_an_event_changes_the_checksum(change: dict[str, Any]) -> None:
    before = events_checksum((make_event(),))

    assert events_checksum((make_event(**change),)) != before


def test_the_checksum_is_sha256_of_canonical_json() -> None:
    event = make_event()
    raw = msgspec.json.encode([event], order="sorted")

    assert events_checksum((event,)) == hashlib.sha256(raw).hexdigest()


def test_a_field_that_came_later_does_not_change_the_sums_of_before() -> None:
    raw = msgspec.json.encode(make_event(), order="sorted")

    assert b"asked_model" not in raw
    assert b'"asked_model":"chat"' in msgspec.json.encode(make_event(asked_model="chat"))


def test_unknown_counts_stay_unknown_on_the_wire() -> None:
    raw = msgspec.json.encode(make_event(prompt_tokens=None))

    assert msgspec.json.decode(raw)["prompt_tokens"] is None
    assert msgspec.json.decode(raw, type=UsageEvent).prompt_tokens is None


def test_an_outcome_that_nobody_defined_is_refused() -> None:
    raw = msgspec.json.encode(make_event()).replace(b'"ok"', b'"fine"')

    with pytest.raises(msgspec.ValidationError, match="fine"):
        msgspec.json.decode(raw, type=UsageEvent)
