"""Serve one completion within the bounds of its pool."""

from routing.core.decision import Refusal
from routing.servers import queueing
from routing.servers.calls import Call
from routing.servers.forwarding import Forwarding
from routing.servers.http import Connection
from routing.servers.state import RouterState


async def serve(state: RouterState, call: Call, client: Connection) -> None:
    """Answer a call. Raises ApiError when nobody could, before a byte was written."""
    pool = call.pool
    most = pool.document.limits.concurrent_requests
    if pool.running >= most:
        queueing.refuse(state, call, busy(most))
    pool.running += 1
    try:
        first = await queueing.admit(state, call)
        await queueing.run(state, Forwarding(state, call, client, first=first), client)
    finally:
        queueing.leave(call)
        pool.running -= 1


def busy(most: int) -> Refusal:
    """For a request over the number that a pool serves at once."""
    return Refusal(
        status=429,
        code="router-busy",
        message=f"This router serves {most} requests of the pool at once.",
        retry_after_seconds=1.0,
        rule="limit:pool.concurrent_requests",
        dropped_reason="rejected-saturated",
    )
