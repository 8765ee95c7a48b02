"""The HTTP message that goes to an engine: few headers, and the client's body as it came."""

from functools import lru_cache

from routing.servers.calls import Call
from routing.servers.documents import Endpoint
from routing.servers.origin import Origin


def request_message(call: Call, endpoint: Endpoint, body: bytes) -> bytes:
    """Head and body in one piece.

    The client's other headers stay here: its key is not the engine's business, and control headers
    of other routers must not reach an engine from outside. Ranks that share an address are told
    apart by a header.
    """
    head = _head(
        call.method,
        call.target,
        endpoint.origin,
        call.content_type,
        endpoint.spec.data_parallel_rank,
    )
    return b"%b%d\r\nx-request-id: %b\r\n%b\r\n%b" % (
        head,
        len(body),
        call.engine_id.encode(),
        call.trace_headers,
        body,
    )


@lru_cache(maxsize=1024)
def _head(method: str, target: str, origin: Origin, content_type: bytes, rank: int | None) -> bytes:
    """What many requests have in common, up to the value of `content-length`."""
    shared = b"" if rank is None else b"x-data-parallel-rank: %d\r\n" % rank
    return (
        b"%b %b HTTP/1.1\r\nhost: %b\r\ncontent-type: %b\r\naccept: */*\r\n%bcontent-length: "
        % (
            method.encode(),
            target.encode("latin-1"),
            str(origin).encode(),
            content_type,
            shared,
        )
    )
