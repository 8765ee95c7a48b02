"""What a caller asks for in headers: priority, targets, waiting time, session, endpoints.

Where a header of llm-d has an older spelling, both are read and the newer one wins. None of them is
handed on to an engine (see `messages`).
"""

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any

from routing.core.document import KeySpec
from routing.servers.errors import ApiError

Headers = Mapping[bytes, bytes]

SESSION_HEADERS = (
    b"x-session-token",
    b"x-session-id",
    b"session-id",
    b"session_id",
    b"x-smg-routing-key",
    b"x-dynamo-session-id",
    b"x-claude-code-session-id",
    b"x-session-affinity",
    b"x-user-id",
    b"x-tenant-id",
)
"""First non-empty wins; the last two and the body's `user` name a person, not a conversation."""
FAIRNESS_HEADERS = (b"x-llm-d-inference-fairness-id", b"x-gateway-inference-fairness-id")
TTFT_HEADERS = (b"x-llm-d-slo-ttft-ms", b"x-slo-ttft-ms")
TPOT_HEADERS = (b"x-llm-d-slo-tpot-ms", b"x-slo-tpot-ms")
TTL_HEADER = b"x-llm-d-inference-ttl"
PRIORITY_HEADER = b"x-consort-priority"
OBJECTIVE_HEADERS = (b"x-llm-d-inference-objective", b"x-gateway-inference-objective")
PREFER_HEADER, IF_AVAILABLE = b"prefer", b"if-available"
FORCE_HEADER, AVOID_HEADER = b"x-consort-endpoints", b"x-consort-avoid-endpoints"
READ = frozenset(
    (
        *SESSION_HEADERS,
        *FAIRNESS_HEADERS,
        *TTFT_HEADERS,
        *TPOT_HEADERS,
        TTL_HEADER,
        PRIORITY_HEADER,
        *OBJECTIVE_HEADERS,
        PREFER_HEADER,
        FORCE_HEADER,
        AVOID_HEADER,
    )
)
"""All that are read here; a gateway must show them."""

MOST_PRIORITY = 2**31 - 1
LONGEST_SECONDS = 86_400.0
MOST_ENDPOINTS = 64
VALUE_CHARACTERS = 200
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)?")
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def of(
    headers: Headers,
    key: KeySpec,
    *,
    pool: str,
    user: str | None,
    objectives: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Fields of an InferenceRequest. Raises ApiError for a value that cannot be read.

    `objectives` are the pool's priorities by name. A number in a header outranks a name.
    """
    if user is None and READ.isdisjoint(headers):
        return {}
    session = session_of(headers, key, pool=pool, user=user)
    flow = first(headers, FAIRNESS_HEADERS)
    found: dict[str, Any] = {
        "session": session,
        "fairness": session if flow is None else _hashed(pool, key.tenant, flow),
    }
    found |= _priority_of(headers, key, objectives or {})
    for field, names in (("slo_ttft_seconds", TTFT_HEADERS), ("slo_tpot_seconds", TPOT_HEADERS)):
        name = next((name for name in names if name in headers), None)
        if name is not None:
            found[field] = _milliseconds(name, headers[name])
    if IF_AVAILABLE in preferences(headers.get(PREFER_HEADER, b"")):
        found["if_available"] = True
    if TTL_HEADER in headers:
        found["queue_seconds"] = _duration(TTL_HEADER, headers[TTL_HEADER])
    for field, name in (("forced", FORCE_HEADER), ("avoided", AVOID_HEADER)):
        if name in headers:
            found[field] = _endpoints(name, headers[name], key)
    return found


def session_of(headers: Headers, key: KeySpec, *, pool: str, user: str | None) -> str | None:
    """Hash of the caller's session, as in an InferenceRequest."""
    session = _session(headers, user)
    return None if session is None else _hashed(pool, key.tenant, session)


def preferences(value: bytes) -> set[bytes]:
    """Names of the preferences in a `Prefer` header (RFC 7240), lower case, without values."""
    parts = (part.partition(b";")[0].partition(b"=")[0] for part in value.split(b","))
    return {part.strip().lower() for part in parts}


def first(headers: Headers, names: tuple[bytes, ...]) -> str | None:
    """The first of the named headers that says something, cut to a bound."""
    for name in names:
        value = headers.get(name)
        if value:
            return value.decode("latin-1")[:VALUE_CHARACTERS]
    return None


def _session(headers: Headers, user: str | None) -> str | None:
    return first(headers, SESSION_HEADERS) or (user or "")[:VALUE_CHARACTERS] or None


def _priority_of(headers: Headers, key: KeySpec, objectives: Mapping[str, int]) -> dict[str, Any]:
    """Priority by number, else by the name of an objective; a name that is not known is 0.

    A number above the highest of the key is refused. A name is lowered to it: gateways set names
    for clients that cannot know what their key may.
    """
    if PRIORITY_HEADER in headers:
        return {"priority": _priority(headers[PRIORITY_HEADER], key)}
    name = first(headers, OBJECTIVE_HEADERS)
    if name is None or name not in objectives:
        return {}
    return {"objective": name, "priority": min(objectives[name], key.highest_priority)}


def _hashed(pool: str, tenant: str, value: str) -> str:
    """Keys affinity only: values of two tenants or pools never meet, and records hold no identity.

    A cryptographic hash, because the caller chooses the value: of a fast one somebody finds a value
    that falls on another tenant's.
    """
    text = f"{len(pool)}:{pool}{len(tenant)}:{tenant}{value}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _priority(value: bytes, key: KeySpec) -> int:
    text = value.decode("latin-1").strip()
    if re.fullmatch(r"[+-]?\d{1,10}", text) and abs(int(text)) <= MOST_PRIORITY:
        if int(text) <= key.highest_priority:
            return int(text)
        name = PRIORITY_HEADER.decode()
        raise ApiError(
            403,
            f"{name} {int(text)} is above {key.highest_priority}, the highest of this key"
            f" ({key.id}).",
            param=name,
        )
    raise _wrong(PRIORITY_HEADER, f"a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}")


def _milliseconds(name: bytes, value: bytes) -> float:
    try:
        seconds = float(value) / 1000
    except ValueError:
        seconds = math.nan
    if 0 < seconds <= LONGEST_SECONDS:
        return seconds
    raise _wrong(name, "milliseconds above 0, at most a day")


def _duration(name: bytes, value: bytes) -> float:
    match = _DURATION.fullmatch(value.decode("latin-1").strip())
    seconds = float(match[1]) * _UNITS[match[2] or ""] if match else math.nan
    if 0 <= seconds <= LONGEST_SECONDS:
        return seconds
    raise _wrong(name, "seconds, or a number with ms, s, m or h; at most a day")


def _endpoints(name: bytes, value: bytes, key: KeySpec) -> tuple[str, ...]:
    if not key.may_test:
        raise ApiError(
            403,
            f"{name.decode()} is for keys that may test; this key ({key.id}) may not.",
            param=name.decode(),
        )
    parts = [part.strip() for part in value.decode("latin-1").split(",")]
    named = tuple(part for part in parts if part)
    if 0 < len(named) <= MOST_ENDPOINTS:
        return named
    raise _wrong(name, f"a comma list of 1 to {MOST_ENDPOINTS} endpoint ids")


def _wrong(name: bytes, allowed: str) -> ApiError:
    return ApiError(
        400, f"The header {name.decode()} cannot be read; it holds {allowed}.", param=name.decode()
    )
