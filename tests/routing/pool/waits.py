"""A pool that lets requests wait, and requests that wait in it."""

import itertools
from typing import Any

import msgspec
import numpy as np

from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.pool.router import PoolRouter
from routing.producers.fair_share import Ticket
from tests.routing.pool.builders import endpoint_dict, make_request, make_router

QUEUE = {"queue_requests": 100, "saturation_seconds": 0.5, "queue_seconds": 30}
LONG = make_request("word " * 6000)
"""About 7,500 tokens: 0.38 s of prefill at 20,000 tokens/s."""


def router_of(*names: str, **overrides: Any) -> PoolRouter:
    overrides.setdefault("admission", QUEUE)
    return make_router(*(endpoint_dict(name) for name in names), **overrides)


_NUMBERS = itertools.count(1)


def asked(**values: Any) -> InferenceRequest:
    """A stream with a prompt like no other."""
    keys = LONG.parsed.block_keys ^ np.uint64(next(_NUMBERS))
    parsed = msgspec.structs.replace(LONG.parsed, block_keys=keys, stream=True)
    return msgspec.structs.replace(LONG, parsed=parsed, **values)


def send(router: PoolRouter, request: InferenceRequest, *, now: float = 0.0) -> Lease | None:
    """Straight through, or `None` when the gate is closed."""
    decision = router.decide(request, now=now)
    return None if decision.refusal else router.begin(request, decision, now=now)


def fill(router: PoolRouter, *, now: float = 0.0) -> list[Lease]:
    """Requests until the gate closes."""
    leases = []
    while (lease := send(router, asked(id=f"fill-{len(leases)}"), now=now)) is not None:
        leases.append(lease)
    return leases


def enter(router: PoolRouter, *, now: float = 0.0, **values: Any) -> Ticket:
    offered = router.queue.offer(asked(**values), body_bytes=10, now=now)
    assert offered.ticket is not None, offered.refusal
    return offered.ticket


def drain(router: PoolRouter, *, now: float) -> list[tuple[Ticket, Lease]]:
    """Everything that fits at this moment, one after the other."""
    released = []
    while (found := router.queue.release(now=now)) is not None:
        ticket, decision = found
        assert decision.refusal is None
        released.append((ticket, router.begin(ticket.request, decision, now=now)))
    return released


def done(router: PoolRouter, lease: Lease, *, now: float) -> None:
    router.first_token(lease, now=now)
    router.end(lease, now=now, outcome="ok")
