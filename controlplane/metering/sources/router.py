"""The usage part of a router's admin port: fetch closed segments, acknowledge stored ones."""

import ssl
import time
from dataclasses import dataclass
from functools import cache

import httpx
import msgspec

from routing.core.usage import UsageSegment

TIMEOUT_SECONDS = 5.0
MAX_ANSWER_BYTES = 32 * 1024 * 1024
TOTAL_SECONDS = 20.0
"""For a whole answer: one that drips would hold up the usage of all other routers."""
SEGMENTS_PER_PAGE = 32
LARGEST_SEQUENCE = 2**63 - 1
LATEST_SECOND = 253_402_300_799
"""End of the year 9999 in Unix time."""


class RouterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One page of segments, oldest first."""

    router: str
    segments: tuple[UsageSegment, ...]
    closed_through: int
    """Highest sequence number in any closed segment of the router."""
    complete_until: float
    """Unix time before which every event is in a closed segment."""


class RouterUnreachableError(Exception):
    """The router gave no usable answer; the message says what happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterAddress:
    """Where a router's admin port is, and what it asks for."""

    admin_url: str
    token: str


def fetch_segments(address: RouterAddress, *, after: int) -> RouterAnswer:
    """Closed segments with events beyond a sequence number. Raises RouterUnreachableError."""
    content = _call(
        address,
        "GET",
        f"/admin/usage-segments?after={after}&limit={SEGMENTS_PER_PAGE}",
    )
    try:
        answer = msgspec.json.decode(content, type=RouterAnswer)
    except msgspec.DecodeError as error:
        raise RouterUnreachableError(f"The answer cannot be read: {error}.") from error
    numbers = [number for each in answer.segments for number in _numbers(each)]
    if not all(0 < number <= LARGEST_SEQUENCE for number in numbers):
        raise RouterUnreachableError("The answer cannot be read: a sequence number is impossible.")
    if not 0 <= answer.complete_until <= LATEST_SECOND:
        raise RouterUnreachableError("The answer cannot be read: complete_until is no time.")
    return answer


def _numbers(segment: UsageSegment) -> tuple[int, int]:
    return segment.first_sequence, segment.last_sequence


def acknowledge(address: RouterAddress, *, sequence: int) -> None:
    """Let the router delete its segments up to a number. Raises RouterUnreachableError."""
    _call(address, "POST", f"/admin/usage-segments/{sequence}/acknowledge")


def _call(address: RouterAddress, method: str, path: str) -> bytes:
    headers = {"Authorization": f"Bearer {address.token}"}
    deadline = time.monotonic() + TOTAL_SECONDS
    try:
        with (
            httpx.Client(verify=_tls(), timeout=TIMEOUT_SECONDS, trust_env=False) as client,
            client.stream(
                method, address.admin_url.rstrip("/") + path, headers=headers
            ) as response,
        ):
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise RouterUnreachableError(
                        f"The answer is larger than {MAX_ANSWER_BYTES} bytes."
                    )
                if time.monotonic() > deadline:
                    raise RouterUnreachableError(
                        f"The answer was not there after {TOTAL_SECONDS:g} s."
                    )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RouterUnreachableError(f"{type(error).__name__}: {error}") from error
    if response.is_error:
        raise RouterUnreachableError(f"The router answered {response.status_code} to {path}.")
    return bytes(content)


@cache
def _tls() -> ssl.SSLContext:
    """Made once: loading the certificates costs more than a call on the loopback."""
    return ssl.create_default_context()
