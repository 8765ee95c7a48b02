"""Requests, limits and status lines: the plain parts of the HTTP server."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def status_line(status: int) -> bytes:
    """Engines may answer with a number that has no standard phrase."""
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d Unknown\r\n" % status


@dataclass(slots=True, kw_only=True)
class HttpRequest:
    """A complete request; header names are lower case, of equal ones the last counts."""

    method: str
    path: str
    query: str
    headers: dict[bytes, bytes]
    body: bytes


class Producer(Protocol):
    """Where the bytes of a streamed answer come from."""

    def pause_reading(self) -> None:
        """Stop; the client does not keep up."""

    def resume_reading(self) -> None:
        """Go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Bounds of a server; `body_bytes` is asked per request because documents change it."""

    body_bytes: Callable[[], int]
    header_bytes: int = 64 * 1024
    idle_seconds: float = 75.0
    request_seconds: float = 120.0
    """Time in which a started request must have arrived completely."""
    connections: int = 16_384
    held_bytes: int = 1024 * 1024 * 1024
    """Bodies of all requests together that are received or being answered."""
    flush_seconds: float = 600.0
    """Time that a reader may take for the end of an answer."""
