"""Endpoints whose batches have no room for one request more, and requests that wait for them."""

from typing import Any

from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.pool.router import PoolRouter
from routing.producers.fair_share import Ticket
from tests.routing.pool.builders import endpoint_dict, make_request, make_router
from tests.routing.pool.waits import send

QUEUE = {"queue_requests": 100, "queue_seconds": 1000.0, "saturation_seconds": 1000.0}
TARGET = 0.0072
"""A step of 6 ms grows by 0.05 ms and context per sequence: room for about a dozen."""


def router_of(*names: str, **document: Any) -> PoolRouter:
    settings = {"admission": QUEUE, "slo": {"tpot_seconds": TARGET}} | document
    return make_router(*(endpoint_dict(name) for name in names), **settings)


def crowd(router: PoolRouter, text: str) -> list[Lease]:
    """Send requests with one beginning until they have to wait, whichever equal one is drawn."""
    leases: list[Lease] = []
    stopped = 0
    while stopped < 12:
        lease = send(router, make_request(text, max_tokens=500, id=f"{text}{len(leases)}"))
        if lease is None:
            stopped += 1
            continue
        router.first_token(lease, now=0.0)
        leases.append(lease)
        assert len(leases) < 100
    return leases


def wait(router: PoolRouter, request: InferenceRequest) -> Ticket:
    """Offer a request that the gate stops."""
    decision = router.decide(request, now=0.0)
    assert decision.refusal is not None
    offered = router.queue.offer(
        request, body_bytes=10, now=0.0, stopped=decision.refusal, endpoint=decision.wanted
    )
    assert offered.ticket is not None
    return offered.ticket
