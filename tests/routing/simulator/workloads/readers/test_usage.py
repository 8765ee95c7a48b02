"""What our routers wrote becomes traffic again."""

import json
from typing import Any

import msgspec
import pytest

from routing.core.usage import OWN_TENANT, UsageEvent, segment_of
from routing.simulator.notes import Note
from routing.simulator.workloads.readers.reading import Bounds, TraceError
from routing.simulator.workloads.readers.usage import read_usage
from tests.routing.simulator.workloads.draws import shared_blocks


def _event(number: int, **changes: Any) -> UsageEvent:
    fields: dict[str, Any] = {
        "sequence": number, "request_id": f"r{number}", "router": "a", "pool": "p",
        "document_version": 1, "policy": "consort", "tenant": "ana", "project": "x", "key_id": "k",
        "model": "m", "endpoint": "e", "instance": "1", "node": "n", "role": "both",
        "prefill_endpoint": None, "received_at": 100.0 + number, "ended_at": 200.0,
        "outcome": "ok", "status": 200, "attempt": 1, "delivered": True, "stream": True,
        "prompt_tokens": 1000, "cached_tokens": 640, "completion_tokens": 50,
        "token_source": "engine", "ttft_seconds": 0.1, "tpot_seconds": 0.01,
    }  # fmt: skip
    return UsageEvent(**(fields | changes))


def _lines(*events: UsageEvent) -> bytes:
    return b"\n".join(map(msgspec.json.encode, events)) + b"\n"


def _decision(number: int, last: str) -> bytes:
    prefix = {"first": "aa", "last": last, "blocks": 15}
    facts = {"prefix": prefix, "session": "s1", "priority": 2, "model": "m"}
    record = {"number": 1, "id": "d", "request_id": f"r{number}", "request": facts}
    return json.dumps(record).encode() + b"\n"


def test_events_come_in_order_of_arrival_not_of_end() -> None:
    requests = read_usage(_lines(_event(3), _event(1, completion_tokens=9), _event(2))).requests

    assert [request.at for request in requests] == [0.0, 1.0, 2.0]
    assert [request.output_tokens for request in requests] == [9, 50, 50]


def test_a_segment_is_read_like_its_events() -> None:
    events = (_event(1), _event(2))

    assert read_usage(msgspec.json.encode(segment_of("a", events))) == read_usage(_lines(*events))


def test_prompts_of_a_tenant_share_what_was_cached() -> None:
    one, other, ben = read_usage(_lines(_event(1), _event(2), _event(3, tenant="ben"))).requests

    assert shared_blocks(one, other) == 10
    assert shared_blocks(one, ben) == 0


def test_records_tell_equal_prompts_and_sessions() -> None:
    raw = _lines(_event(1), _event(2), _event(3))
    raw += _decision(1, "bb") + _decision(2, "bb") + _decision(3, "cc") + b'{"outcome_of": "d"}\n'

    one, same, other = read_usage(raw).requests

    assert one.prompt == same.prompt
    assert shared_blocks(one, other) == 10
    assert (one.session, one.priority) == ("s1", 2)


def test_what_was_no_request_of_a_client_is_left_out_and_told() -> None:
    raw = _lines(
        _event(1),
        _event(2, delivered=False),
        _event(3, prompt_tokens=None),
        _event(4, tenant=OWN_TENANT),
    )

    reading = read_usage(raw, bounds=Bounds(longest_tokens=512))

    assert len(reading.requests) == 1
    assert reading.notes == (
        Note("retried", {"count": 1}),
        Note("no-counts", {"count": 1}),
        Note("modelled-sharing"),
        Note("cut-prompts", {"count": 1, "tokens": 512}),
    )


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param(b"", "no usage event", id="empty"),
        pytest.param(b"[]", "Line 1: ", id="list"),
        pytest.param(b"{}", "Line 1: It is neither", id="other"),
        pytest.param(b'{"received_at": "x"}', "Line 1: ", id="types"),
        pytest.param(_lines(_event(1, prompt_tokens=-4)), "Line 1: .*>= 0", id="negative"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(raw: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        read_usage(raw)
