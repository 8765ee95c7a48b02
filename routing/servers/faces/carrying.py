"""What a request has to carry to its engine besides its body, whichever proxy brings it there."""

from routing.servers.calls import Call
from routing.servers.faces.picks import Pick, addresses

DESTINATION = "x-gateway-destination-endpoint"
PREFILLER, RANK = "x-prefiller-host-port", "x-data-parallel-rank"
REQUEST_ID, DECISION_ID = "x-request-id", "x-consort-decision-id"

Lines = dict[str, bytes]
"""Headers by name."""


def request_lines(pick: Pick, call: Call) -> Lines:
    """Headers for the request. Raises ApiError for an endpoint that a gateway cannot go to.

    The id is unlike any other: an engine takes two requests of one id for one.
    """
    endpoints, prefill = pick.endpoints, pick.attempt.prefill
    lines = {
        DESTINATION: addresses(endpoints).encode(),
        REQUEST_ID: call.engine_id.encode(),
        DECISION_ID: pick.decision.id.encode(),
    }
    if prefill is not None:
        lines[PREFILLER] = addresses((prefill,)).encode()
    rank = endpoints[0].spec.data_parallel_rank
    if rank is not None:
        lines[RANK] = b"%d" % rank
    return lines
