"""Usage events: what a router writes to its spool for each attempt, without any prompt text."""

import hashlib
from typing import Literal

import msgspec

Outcome = Literal["ok", "error", "aborted", "refused"]
TokenSource = Literal["engine", "counted_by_router", "none"]

OWN_TENANT = "consort"
"""Tenant and project in events of prompts that no client sent."""
WARM_UP_KEY = "warm-up"
"""Key in events of first prompts of fresh decode endpoints; no issued key has this id."""


class UsageEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt of one request. Token counts are `None` when nobody counted them.

    A field that came later has a default, which is not written: segments of before keep their sum.
    """

    sequence: int
    """Gapless per router, from 1; never used twice, also across restarts."""
    request_id: str
    router: str
    pool: str
    document_version: int
    policy: str
    tenant: str
    project: str
    key_id: str
    model: str
    endpoint: str | None
    """Endpoint that answered (or was tried); `None` when the request was refused before."""
    instance: str | None
    node: str | None
    role: str | None
    prefill_endpoint: str | None
    received_at: float
    """Unix time in seconds."""
    ended_at: float
    outcome: Outcome
    status: int
    attempt: int
    delivered: bool
    """False for an attempt that was retried elsewhere: its tokens are waste, not billable."""
    stream: bool
    prompt_tokens: int | None
    cached_tokens: int | None
    """Part of `prompt_tokens` that the engine that computed the prompt found in its cache."""
    completion_tokens: int | None
    token_source: TokenSource
    ttft_seconds: float | None
    tpot_seconds: float | None
    asked_model: str | None = None
    """Name that the caller used, when a rule rewrote it into `model`."""


class UsageSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A closed, immutable run of events of one router, delivered at least once."""

    router: str
    first_sequence: int
    last_sequence: int
    sha256: str
    events: tuple[UsageEvent, ...]


def segment_of(router: str, events: tuple[UsageEvent, ...]) -> UsageSegment:
    """Close events (at least one, in sequence) into a segment with its checksum."""
    return UsageSegment(
        router=router,
        first_sequence=events[0].sequence,
        last_sequence=events[-1].sequence,
        sha256=events_checksum(events),
        events=events,
    )


def events_checksum(events: tuple[UsageEvent, ...]) -> str:
    """SHA-256 over the canonical JSON of the events, as hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(events, order="sorted")).hexdigest()
