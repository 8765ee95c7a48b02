"""The HTTP message that goes to an engine: few headers, and the client's body as it came."""

from routing.servers.calls import Call
from routing.servers.upstream import Origin


def request_message(call: Call, origin: Origin, body: bytes) -> bytes:
    """Head and body in one piece.

    The client's other headers stay here: its key is not the engine's business, and control headers
    of other routers must not reach an engine from outside.
    """
    return b"".join(
        (
            b"POST ",
            call.request.path.encode(),
            b" HTTP/1.1\r\nhost: ",
            str(origin).encode(),
            b"\r\ncontent-type: application/json\r\naccept: */*\r\nx-request-id: ",
            call.request.id.encode(),
            b"\r\ncontent-length: %d\r\n" % len(body),
            call.trace_headers,
            b"\r\n",
            body,
        )
    )
