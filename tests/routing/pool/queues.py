"""A queue, and requests for it."""

from typing import Any

import msgspec

from routing.core.request import InferenceRequest
from routing.pool.queue import RequestQueue
from routing.producers.fair_share import Ticket
from tests.routing.pool.builders import endpoint_dict, make_document, make_request

REQUEST = make_request("x")


def queue_of(tenants: list[dict[str, Any]] | None = None, **admission: Any) -> RequestQueue:
    fields = {"queue_requests": 1000} | admission
    return RequestQueue(make_document(endpoint_dict("a"), admission=fields, tenants=tenants or []))


def asked(**values: Any) -> InferenceRequest:
    return msgspec.structs.replace(REQUEST, **values)


def enter(
    queue: RequestQueue, *, now: float = 0.0, tokens: int = 100, body_bytes: int = 10, **values: Any
) -> Ticket:
    offer = queue.offer(asked(**values), gate="g", tokens=tokens, body_bytes=body_bytes, now=now)
    assert offer.ticket is not None, offer.full
    return offer.ticket


def serve(queue: RequestQueue, *, now: float = 0.0) -> Ticket:
    head = queue.head()
    assert head is not None
    queue.release(head, now=now)
    return head
