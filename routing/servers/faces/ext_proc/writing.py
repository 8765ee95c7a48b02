"""The messages that go to Envoy.

They are filled in place: a message that is given to the constructor of another one is copied, at
each level, with its body.
"""

from collections.abc import Iterable, Mapping

from routing.servers.errors import ApiError
from routing.servers.faces.ext_proc.messages_pb2 import (
    CommonResponse,
    HeaderMutation,
    ProcessingResponse,
)
from routing.servers.faces.ext_proc.reading import DESTINATION, LOAD_BALANCER

CHUNK_BYTES = 62_000
"""Most body bytes of one message: Envoy reads 64 KiB, and the message has more than the body."""
OVERWRITE = 2
SCORES = "x-gateway-destination-endpoint-scores"

Lines = Mapping[str, bytes]
"""Headers by name."""
Parts = list[ProcessingResponse]


def request_headers() -> ProcessingResponse:
    """Answer to the headers of a request that say nothing yet."""
    found = ProcessingResponse()
    found.request_headers.SetInParent()
    return found


def picked_headers(lines: Lines, remove: Iterable[str]) -> ProcessingResponse:
    """Answer to the headers with a pick."""
    found = ProcessingResponse()
    _picked(found.request_headers.response, lines, remove)
    return found


def picked_body(lines: Lines, remove: Iterable[str], body: bytes | None) -> ProcessingResponse:
    """Answer to a buffered body with a pick; `None` leaves its bytes."""
    found = ProcessingResponse()
    common = found.request_body.response
    _picked(common, lines, remove)
    if body is not None:
        common.body_mutation.body = body
    return found


def request_chunks(body: bytes, *, is_last: bool) -> Parts:
    """A body on its way on, in pieces; the last one ends it unless trailers follow."""
    found = []
    for piece, end in pieces(body, is_last=is_last):
        part = ProcessingResponse()
        _stream(part.request_body.response, piece, is_end=end)
        found.append(part)
    return found


def response_chunks(body: bytes, *, is_last: bool) -> Parts:
    """The same for a body on its way back."""
    found = []
    for piece, end in pieces(body, is_last=is_last):
        part = ProcessingResponse()
        _stream(part.response_body.response, piece, is_end=end)
        found.append(part)
    return found


def response_body(body: bytes | None) -> ProcessingResponse:
    """Answer to a part of a body that Envoy passes on itself; `None` leaves its bytes."""
    found = ProcessingResponse()
    found.response_body.SetInParent()
    if body:
        found.response_body.response.body_mutation.body = body
    elif body is not None:
        found.response_body.response.body_mutation.clear_body = True
    return found


def response_headers(lines: Lines, remove: Iterable[str] = ()) -> ProcessingResponse:
    """Answer to the headers of an answer."""
    found = ProcessingResponse()
    found.response_headers.SetInParent()
    if lines or remove:
        mutate(found.response_headers.response.header_mutation, lines, remove)
    return found


def request_trailers() -> ProcessingResponse:
    """Trailers stay as they are."""
    found = ProcessingResponse()
    found.request_trailers.SetInParent()
    return found


def response_trailers() -> ProcessingResponse:
    """Trailers stay as they are."""
    found = ProcessingResponse()
    found.response_trailers.SetInParent()
    return found


def destined(
    response: ProcessingResponse, destination: str, scores: Mapping[str, float] | None
) -> ProcessingResponse:
    """Tell the load balancer the same as the header does, and scores where they are wanted."""
    told = response.dynamic_metadata.get_or_create_struct(LOAD_BALANCER)
    told[DESTINATION] = destination
    if scores is not None:
        told.get_or_create_struct(SCORES).update(scores)
    return response


def refused(error: ApiError, path: str, headers: Lines) -> ProcessingResponse:
    """End the request with an error in the form of its API."""
    lines = {"content-type": b"application/json", **headers, **named(error.header_lines())}
    found = ProcessingResponse()
    told = found.immediate_response
    told.status.code = error.status
    mutate(told.headers, lines)
    told.body = error.body(path)
    told.details = f"consort:{error.code}"
    return found


def named(lines: bytes) -> dict[str, bytes]:
    """Header lines, each ended by CRLF, by name."""
    pairs = (line.split(b": ", 1) for line in lines.split(b"\r\n") if line)
    return {pair[0].decode("latin-1"): pair[1] for pair in pairs}


def pieces(body: bytes, *, is_last: bool) -> list[tuple[bytes, bool]]:
    """Cut to what a message may hold; an empty body is one empty piece."""
    if len(body) <= CHUNK_BYTES:
        return [(body, is_last)]
    starts = range(0, len(body), CHUNK_BYTES)
    final = starts[-1]
    return [(body[at : at + CHUNK_BYTES], is_last and at == final) for at in starts]


def mutate(told: HeaderMutation, lines: Lines, remove: Iterable[str] = ()) -> None:
    """Set headers, whatever they were, and take others away."""
    for name, value in lines.items():
        header = told.set_headers.add(append_action=OVERWRITE).header
        header.key, header.raw_value = name, value
    told.remove_headers.extend(remove)


def _picked(told: CommonResponse, lines: Lines, remove: Iterable[str]) -> None:
    """With a pick the request's route is chosen again."""
    told.clear_route_cache = True
    mutate(told.header_mutation, lines, remove)


def _stream(told: CommonResponse, piece: bytes, *, is_end: bool) -> None:
    streamed = told.body_mutation.streamed_response
    streamed.body, streamed.end_of_stream = piece, is_end
