"""Header lines that a sidecar hands on: the client's to engines, the engine's to the client.

Unlike the proxy, which writes every header anew, a sidecar stands in the way of a gateway that has
judged the request already: what is not about this connection, or about routing, passes.
"""

from routing.servers.http_parts import HttpRequest
from routing.servers.origin import Origin
from routing.servers.upstream import Headers

PREFILLER_HEADER = b"x-prefiller-host-port"
RANK_HEADER = b"x-data-parallel-rank"
"""Names a rank of the engine before which the sidecar stands, and of no other one."""

_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""RFC 9110, 7.6.1, and older relatives."""
_WRITTEN_ANEW = frozenset((b"host", b"content-length", b"expect", b"x-request-id"))
_CONTROL = frozenset(
    (
        PREFILLER_HEADER,
        b"x-encoder-hosts-ports",
        b"x-data-parallel-host-port",
        b"x-kv-cache-source-host-port",
        b"x-slo-ttft-ms",
        b"x-slo-tpot-ms",
        b"epp-profile",
        b"test-epp-endpoint-selection",
    )
)
_CONTROL_PREFIXES = (b"x-llm-d-", b"x-gateway-", b"x-consort-")


def request_lines(headers: Headers, engine_id: str) -> bytes:
    """The client's headers for an engine, each line ended by CRLF, with the request's id."""
    named = _named_by_connection(headers)
    kept = (
        b"%b: %b\r\n" % (name, value)
        for name, value in headers.items()
        if name not in named and name not in _WRITTEN_ANEW and not _is_control(name)
    )
    return b"%bx-request-id: %b\r\n" % (b"".join(kept), engine_id.encode())


def without_rank(headers: Headers) -> Headers:
    """What another engine than the local one may be told."""
    return {name: value for name, value in headers.items() if name != RANK_HEADER}


def request_message(request: HttpRequest, origin: Origin, lines: bytes, body: bytes) -> bytes:
    """The whole request for an engine; `lines` are those of `request_lines`."""
    query = f"?{request.query}" if request.query else ""
    return b"%b %b HTTP/1.1\r\nhost: %b\r\n%bcontent-length: %d\r\n\r\n%b" % (
        request.method.encode(),
        f"{request.path}{query}".encode("latin-1"),
        str(origin).encode(),
        lines,
        len(body),
        body,
    )


def answer_lines(headers: Headers) -> bytes:
    """The engine's headers for the client, but those that the server writes itself."""
    dropped = _named_by_connection(headers) | {b"content-length", b"content-type", b"date"}
    return b"".join(
        b"%b: %b\r\n" % (name, value) for name, value in headers.items() if name not in dropped
    )


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    named = headers.get(b"connection")
    if not named:
        return _HOP_BY_HOP
    return _HOP_BY_HOP | {part.strip().lower() for part in named.split(b",")}


def _is_control(name: bytes) -> bool:
    return name in _CONTROL or name.startswith(_CONTROL_PREFIXES)
