"""When a request is queued or refused instead of sent."""

from typing import Annotated

import msgspec

from routing.core.specs.base import Count, Positive, Seconds, Share, Strict, Timeout


class Band(Strict, frozen=True, kw_only=True):
    """Bounds of one priority; a priority without a band has the pool's."""

    priority: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
    queue_requests: Count | None = None
    """Most of them that wait; sheddable requests (below 0) wait only where this says so."""
    queue_seconds: Timeout | None = None
    """Longest wait; it may shorten the pool's."""
    trickle_share: Share | None = None
    """Part of the tokens that gets through while higher priorities wait; `None` is the pool's.
    Sheddable priorities have none."""


class Admission(Strict, frozen=True, kw_only=True):
    """When a request is queued or refused instead of sent."""

    maximum_wait_seconds: Seconds = 120.0
    """Expected wait over which a request is refused with 429."""
    queue_requests: Count = 0
    """Most requests that wait in the router; 0 refuses at once."""
    queue_bytes: Positive = 256 * 1024 * 1024
    """Most bytes of waiting bodies."""
    queue_seconds: Timeout = 30.0
    """Longest wait in the router; a band or a request may shorten it."""
    saturation_seconds: Seconds | None = None
    """Expected wait at the best endpoint over which requests are queued; `None` uses the TTFT of
    the pool's SLO, else 2 s."""
    trickle_share: Share = 0.02
    """Part of the tokens that each lower priority of 0 or more gets while higher ones wait."""
    bands: Annotated[tuple[Band, ...], msgspec.Meta(max_length=20)] = ()
    evict_sheddable: bool = False
    """End running sheddable requests when higher bands wait."""
