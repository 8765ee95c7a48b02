"""Usage events and segments with valid defaults."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from controlplane.metering.models import UsageHour
from routing.core.usage import (
    OWN_TENANT,
    WARM_UP_KEY,
    UsageEvent,
    UsageSegment,
    segment_of,
)

HOUR = datetime(2026, 11, 30, 10, tzinfo=UTC)
AT = HOUR.timestamp() + 60


def make_event(sequence: int, **overrides: Any) -> UsageEvent:
    """An answered request of 1,000 prompt tokens, 600 of them from the cache, and 50 out."""
    defaults = {
        "sequence": sequence,
        "request_id": f"r-{sequence}",
        "router": "r1",
        "pool": "granite",
        "document_version": 3,
        "policy": "consort",
        "tenant": "ana-ltd",
        "project": "chat",
        "key_id": "csk_local_1",
        "model": "granite-4.1-8b",
        "endpoint": "gpu-1-0",
        "instance": "gpu-1-0-a",
        "node": "gpu-1",
        "role": "both",
        "prefill_endpoint": None,
        "received_at": AT,
        "ended_at": AT + 2,
        "outcome": "ok",
        "status": 200,
        "attempt": 1,
        "delivered": True,
        "stream": True,
        "prompt_tokens": 1000,
        "cached_tokens": 600,
        "completion_tokens": 50,
        "token_source": "engine",
        "ttft_seconds": 0.2,
        "tpot_seconds": 0.01,
    }
    return UsageEvent(**defaults | overrides)


def make_segment(events: Iterable[UsageEvent], **overrides: Any) -> UsageSegment:
    found = tuple(events)
    return msgspec.structs.replace(segment_of(found[0].router, found), **overrides)


def make_events(first: int, last: int, **overrides: Any) -> list[UsageEvent]:
    return [make_event(sequence, **overrides) for sequence in range(first, last + 1)]


def make_usage_hour(**overrides: Any) -> UsageHour:
    counts = dict.fromkeys([*UsageHour.COUNTS, *UsageHour.BUCKETS, *UsageHour.WASTE], 0)
    defaults = {
        "hour": HOUR,
        "tenant": "ana-ltd",
        "project": "chat",
        "key": "csk_local_1",
        "pool": "granite",
        "node": "gpu-1",
        "role": "both",
        "model": "granite-4.1-8b",
        "policy": "consort",
        "source": "simulated",
        "requests": 10,
        "requests_ok": 10,
        "input_uncached": 400,
        "cache_read": 600,
        "output": 50,
        "first_request_at": HOUR,
        "last_response_at": HOUR,
    }
    return UsageHour.objects.create(**counts | defaults | overrides)


def first_prompt(sequence: int, **overrides: Any) -> UsageEvent:
    """What a router writes of the prompt that it sends to a fresh decode endpoint."""
    owner = {"tenant": OWN_TENANT, "project": OWN_TENANT, "key_id": WARM_UP_KEY}
    used = {"prompt_tokens": 302, "cached_tokens": 0, "completion_tokens": 1}
    values = {"role": "decode", "delivered": False, "stream": False, **owner, **used}
    return make_event(sequence, **values | overrides)


def unchanging(model: Any) -> list[dict[str, Any]]:
    """All columns of all rows but the time of the last write."""
    rows = model.objects.order_by("pk").values()
    return [{name: row[name] for name in row if name != "updated_at"} for row in rows]
