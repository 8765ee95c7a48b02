"""Requests, limits and status lines: the plain parts of the HTTP server."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import httptools
import msgspec

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def status_line(status: int) -> bytes:
    """Engines may answer with a number that has no standard phrase."""
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d Unknown\r\n" % status


class HttpRequest(msgspec.Struct, kw_only=True):
    """A complete request; header names are lower case, of equal ones the last counts."""

    method: str
    path: str
    query: str
    headers: dict[bytes, bytes]
    body: bytes


def request_of(
    method: bytes, target: bytes, headers: dict[bytes, bytes], body: list[bytes]
) -> HttpRequest:
    """Put a request together. Raises HttpParserInvalidURLError."""
    if _PLAIN_PATH.fullmatch(target):
        path, query = target, b""
    else:
        url = httptools.parse_url(target)
        path, query = url.path or b"/", url.query or b""
    return HttpRequest(
        method=method.decode("ascii"),
        path=path.decode("latin-1"),
        query=query.decode("latin-1"),
        headers=headers,
        body=body[0] if len(body) == 1 else b"".join(body),
    )


class Producer(Protocol):
    """Where the bytes of a streamed answer come from."""

    def pause_reading(self) -> None:
        """Stop; the client does not keep up."""

    def resume_reading(self) -> None:
        """Go on."""


UNGATED_BYTES = 64 * 1024
"""Bodies up to this are read before anybody asks who sends them."""

_PLAIN_PATH = re.compile(rb"/[^?#]*")

Refused = tuple[int, bytes]
"""Status and body of an answer that the server gives in place of a handler."""
ErrorBody = Callable[[int, str], bytes]
"""Status and sentence to the JSON body of an error that the server itself reports."""


def _let_in(headers: dict[bytes, bytes]) -> Refused | None:
    """Everybody may send a large body."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Bounds of a server; `body_bytes` is asked per request because documents change it."""

    body_bytes: Callable[[], int]
    gate: Callable[[dict[bytes, bytes]], Refused | None] = _let_in
    """Asked with the headers before a large body is read, so that strangers fill no memory."""
    header_bytes: int = 64 * 1024
    idle_seconds: float = 75.0
    request_seconds: float = 120.0
    """Time in which a started request must have arrived completely."""
    connections: int = 16_384
    held_bytes: int = 1024 * 1024 * 1024
    """Bodies of all requests together that are received or being answered."""
    flush_seconds: float = 600.0
    """Time that a reader may take for the end of an answer."""
    begins_at_once: bool = False
    """Handlers begin before they have a task, so none may ask for it until it has waited."""

    def refusal_at_gate(self, headers: dict[bytes, bytes], size: int) -> Refused | None:
        """What the gate says of a large body, or of one whose size is not declared."""
        is_large = size > UNGATED_BYTES or b"transfer-encoding" in headers
        return self.gate(headers) if is_large else None
