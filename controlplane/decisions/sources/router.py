"""The decisions part of a router's admin port: read records, ask what would happen."""

import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from controlplane.serving import outward

TIMEOUT = httpx.Timeout(5.0, connect=1.0)
TOTAL_SECONDS = 20.0
"""For a whole answer: one that drips would hold up all other routers."""
MAX_ANSWER_BYTES = 48 * 1024 * 1024
LINES_PER_PAGE = 200


TEST_TIMEOUT = httpx.Timeout(60.0, connect=2.0)
TEST_SECONDS = 60.0
MAX_TEST_BYTES = 16 * 1024 * 1024


class RouterUnreachableError(Exception):
    """The router gave no usable answer; the message says what happened."""


class QuestionRefusedError(Exception):
    """The router answered with a problem; the message is its own."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterPort:
    """Where a router's admin port is, and what it asks for."""

    name: str
    admin_url: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """What came back from a completion."""

    status: int
    decision_id: str
    """Of the router; "" when it made none."""
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """How long a call may take, per step and as a whole, and how large its answer may be."""

    timeout: httpx.Timeout
    seconds: float
    size: int


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Lines after a number, oldest first; see `routing.servers.decisions`."""

    router: str
    started_at: float
    decisions: list[dict[str, Any]]
    last: int
    left_out: int = 0
    shadow: dict[str, dict[str, dict[str, float]]] = {}
    policies: dict[str, str] = {}
    """Live policy per pool."""
    sample_rates: dict[str, float] = {}


def fetch(port: RouterPort, *, after: int) -> Page:
    """One page of lines. Raises RouterUnreachableError."""
    path = f"/admin/decisions?after={after}&limit={LINES_PER_PAGE}"
    status, content = _call(port, "GET", path, None)
    if status != httpx.codes.OK:
        raise RouterUnreachableError(f"The router answered {status} to {path}.")
    try:
        return msgspec.json.decode(content, type=Page)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RouterUnreachableError(f"The answer cannot be read: {error}.") from error


def ask(port: RouterPort, path: str, question: dict[str, Any]) -> dict[str, Any]:
    """Put a question. Raises RouterUnreachableError or QuestionRefusedError."""
    status, content = _call(port, "POST", path, msgspec.json.encode(question))
    answer = _decoded(content)
    if status != httpx.codes.OK:
        raise QuestionRefusedError(status, str(answer.get("detail", f"status {status}"))[:500])
    return answer


def _call(port: RouterPort, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {port.token}", "Content-Type": "application/json"}
    url = port.admin_url.rstrip("/") + path
    bounds = _Bounds(timeout=TIMEOUT, seconds=TOTAL_SECONDS, size=MAX_ANSWER_BYTES)
    status, _, content = _answer(method, url, headers, body, bounds)
    return status, content


def complete(public_url: str, body: dict[str, Any], headers: dict[str, str]) -> Completed:
    """Send a chat completion to a router. Raises RouterUnreachableError."""
    url = f"{public_url.rstrip('/')}/v1/chat/completions"
    named = {"Content-Type": "application/json", **headers}
    bounds = _Bounds(timeout=TEST_TIMEOUT, seconds=TEST_SECONDS, size=MAX_TEST_BYTES)
    status, found, content = _answer("POST", url, named, msgspec.json.encode(body), bounds)
    decision_id = found.get("x-consort-decision-id", "")
    return Completed(status=status, decision_id=decision_id, content=content)


def _answer(
    method: str, url: str, headers: dict[str, str], body: bytes | None, bounds: "_Bounds"
) -> tuple[int, httpx.Headers, bytes]:
    deadline = time.monotonic() + bounds.seconds
    # A key or a name that somebody typed may hold any letter.
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    try:
        with (
            outward.client(bounds.timeout) as client,
            client.stream(method, url, headers=sent, content=body) as response,
        ):
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > bounds.size:
                    raise RouterUnreachableError("The answer is too long.")
                if time.monotonic() > deadline:
                    raise RouterUnreachableError("The answer took too long.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RouterUnreachableError(f"{type(error).__name__}: {error}") from error
    return response.status_code, response.headers, bytes(content)


def find(port: RouterPort, decision_id: str) -> dict[str, Any]:
    """One record that the router still has. Raises as `ask` does."""
    status, content = _call(port, "GET", f"/admin/decisions/{quote(decision_id, safe='')}", None)
    answer = _decoded(content)
    if status != httpx.codes.OK:
        raise QuestionRefusedError(status, str(answer.get("detail", f"status {status}"))[:500])
    record = answer.get("record")
    if not isinstance(record, dict):
        raise RouterUnreachableError("The answer holds no record.")
    return record


def _decoded(content: bytes) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RouterUnreachableError(f"The answer cannot be read: {error}.") from error
    return answer
