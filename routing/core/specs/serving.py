"""Prefill/decode pairs, retries and bounds of a pool in service."""

from typing import Annotated, Literal

import msgspec

from routing.core.specs.base import Count, Positive, Strict, Timeout


class Disaggregation(Strict, frozen=True, kw_only=True):
    """Whether and when a prompt is computed on another endpoint than its output."""

    protocol: Literal["nixl", "sglang"] = "nixl"
    allow_staging: bool = True
    """Use pairs that are compatible only through host memory."""
    allow_unknown_pairs: bool = False
    minimum_uncached_tokens: Count = 256
    """Below this a prompt is always computed where it is decoded."""
    local_prefill_tokens: Positive | None = None
    """Longest uncached prompt that a decode endpoint computes itself after prefill endpoints
    failed; a longer one is answered with 503. `None` is any."""
    transfer_timeout_seconds: Timeout = 30.0
    """Time for a destination to fetch KV and answer; the pair is blamed after it."""
    warm_up: bool = True
    """Send a fresh decode endpoint an ordinary prompt before the first pull."""


class Limits(Strict, frozen=True, kw_only=True):
    """Bounds that protect a router."""

    body_bytes: Positive = 32 * 1024 * 1024
    concurrent_requests: Positive = 4096
    first_token_timeout_seconds: Timeout = 300.0
    stall_timeout_seconds: Timeout = 60.0
    connect_timeout_seconds: Timeout = 2.0
    attempts: Annotated[int, msgspec.Meta(ge=1, le=10)] = 3
    drain_timeout_seconds: Timeout | None = None
    """Time for streams at a draining endpoint to end; after it they go on elsewhere or are ended.
    `None` waits for the last one."""
    streams_continue: bool = False
    """Resume a broken stream on another endpoint with the tokens so far."""
    unknown_paths: Literal["refuse", "pass"] = "refuse"
