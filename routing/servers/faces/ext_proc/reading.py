"""What Envoy's messages say: a request, a subset hint, who served, the status of an answer."""

from collections.abc import Iterable, Mapping

from google.protobuf.struct_pb2 import Struct, Value

from routing.servers.errors import ApiError
from routing.servers.faces.ext_proc.messages_pb2 import HeaderMap, ProcessingRequest
from routing.servers.http_parts import HttpRequest, request_of
from routing.servers.origin import Origin

DESTINATION = "x-gateway-destination-endpoint"
SUBSET, SUBSET_FILTER = "x-gateway-destination-endpoint-subset", "envoy.lb.subset_hint"
SERVED, LOAD_BALANCER = "x-gateway-destination-endpoint-served", "envoy.lb"
TEST_SELECTION = b"test-epp-endpoint-selection"

Headers = dict[bytes, bytes]
MOST_SUBSET = 4096
"""Entries of a subset hint that are read."""
MOST_HEADERS = 1024
MOST_HEAD_BYTES = 1024 * 1024
"""Of the message with a request's headers and what the gateway adds to them."""
HEADER_BYTES = 256
"""What a header costs to keep, beside its bytes."""
SMALL_BYTES = 4096
"""Pieces of a body below this are put together."""


def headers_of(told: HeaderMap) -> Headers:
    """Names in lower case; of equal ones the last counts. Values come as text or as bytes."""
    return {
        header.key.lower().encode(): header.raw_value or header.value.encode()
        for header in told.headers
    }


def head_bytes(message: ProcessingRequest) -> int:
    """What a request's headers cost to keep. Raises ApiError for more than a request may have."""
    size, count = message.ByteSize(), len(message.request_headers.headers.headers)
    if size > MOST_HEAD_BYTES or count > MOST_HEADERS:
        raise ApiError(
            431,
            f"A request may have {MOST_HEADERS} headers, and {MOST_HEAD_BYTES} bytes with what its"
            " gateway adds to them.",
        )
    return size + count * HEADER_BYTES


def keep(body: list[bytes], piece: bytes) -> None:
    """Add a piece to a body, so that many small ones cost no more than their bytes."""
    if body and len(piece) < SMALL_BYTES and len(body[-1]) < SMALL_BYTES:
        body[-1] += piece
    elif piece:
        body.append(piece)


def http_request(headers: Headers, body: list[bytes]) -> HttpRequest:
    """The client's request as our own port would have read it.

    Raises httptools.HttpParserInvalidURLError for a path that is none.
    """
    method, target = headers.get(b":method", b""), headers.get(b":path", b"")
    return request_of(method, target, headers, body)


def body_mode(message: ProcessingRequest) -> int | None:
    """How bodies of requests are sent; `None` when the gateway does not say, as old ones."""
    if not message.HasField("protocol_config"):
        return None
    return message.protocol_config.request_body_mode


def subset_of(message: ProcessingRequest) -> tuple[str, ...] | None:
    """Addresses that the gateway allows, as a list or as comma-separated text; `None` is all.

    A hint of another type allows nobody: it was meant to narrow.
    """
    value = _member(message.metadata_context.filter_metadata, SUBSET_FILTER, SUBSET)
    if value is None:
        return None
    if value.HasField("list_value"):
        texts: Iterable[str] = (entry.string_value for entry in value.list_value.values)
    else:
        texts = value.string_value.split(",")
    entries = tuple(text.strip() for text in texts if text.strip())
    return entries[:MOST_SUBSET]


def selection_of(headers: Headers) -> tuple[str, ...] | None:
    """Addresses that a conformance test asks for; `None` without such a header."""
    told = headers.get(TEST_SELECTION)
    if told is None:
        return None
    entries = (part.strip() for part in told.decode("latin-1").split(","))
    return tuple(entry for entry in entries if entry)[:MOST_SUBSET]


def served_of(message: ProcessingRequest) -> str | None:
    """`ip:port` that answered, as the load balancer noted it."""
    value = _member(message.metadata_context.filter_metadata, LOAD_BALANCER, SERVED)
    return None if value is None else value.string_value.strip() or None


def has_load_balancer(message: ProcessingRequest) -> bool:
    """Whether the gateway sent what its load balancer noted."""
    return LOAD_BALANCER in message.metadata_context.filter_metadata


def within(origins: Mapping[str, Origin], entries: Iterable[str]) -> frozenset[str]:
    """Names of the origins that entries name: `ip:port`, or `ip` for every port of it.

    IPv6 is written with brackets before a port, with or without them alone.
    """
    wanted = set(entries)
    return frozenset(
        name
        for name, origin in origins.items()
        if str(origin) in wanted or origin.host in wanted or f"[{origin.host}]" in wanted
    )


def status_of(headers: Headers) -> int | None:
    """Status of an answer; `None` if it is no number."""
    told = headers.get(b":status", b"")
    return int(told) if told.isdigit() and len(told) == 3 else None


def _member(metadata: Mapping[str, Struct], filter_name: str, key: str) -> Value | None:
    # Asking a map of messages for a name that is not there would put it in.
    if filter_name not in metadata:
        return None
    fields: Mapping[str, Value] = metadata[filter_name].fields
    return fields.get(key)
