"""Breakers per endpoint and failure kind, and per prefill/decode pair.

A dead address is forgotten at once (one refused connection), a failing one after a few failures in
a row. An open breaker keeps its endpoint out for a time that doubles with each reopening; after it,
one request is let through to find out. Client errors (4xx) are never reported here.

A failed KV transfer is counted on the pair: either end alone may be innocent.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args

FailureKind = Literal["connect", "status", "timeout", "stall", "kv_transfer"]
KINDS: tuple[str, ...] = get_args(FailureKind)

THRESHOLDS: dict[str, int] = {
    "connect": 1,
    "status": 3,
    "timeout": 2,
    "stall": 3,
    "kv_transfer": 2,
}
"""Failures in a row that open a breaker. A refused connection is certain, the others are not."""
BEFORE_FIRST_TOKEN = ("connect", "timeout")
"""Failures that a first token disproves; the others may come after it."""
FIRST_OPEN_SECONDS = 1.0
LONGEST_OPEN_SECONDS = 30.0

K = TypeVar("K", bound=Hashable)

CLOSED = float("-inf")


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row per kind; `open_until` is -inf while closed."""

    failures: dict[str, int] = field(default_factory=dict)
    open_until: float = CLOSED
    opened: int = 0
    """Times it opened since the last success."""
    last_kind: str | None = None

    def fail(self, kind: str, *, now: float) -> None:
        """Count one failure; opens at the kind's threshold, or at once when it was half open."""
        self.last_kind = kind
        if self.open_until > now:
            # Late failures of requests sent before it opened do not prolong it.
            return
        self.failures[kind] = self.failures.get(kind, 0) + 1
        half_open = self.open_until != CLOSED
        if half_open or self.failures[kind] >= THRESHOLDS[kind]:
            self.opened += 1
            pause = FIRST_OPEN_SECONDS * 2.0 ** min(self.opened - 1, 10)
            self.open_until = now + min(pause, LONGEST_OPEN_SECONDS)
            self.failures.clear()

    def succeed(self) -> None:
        """A request went well: closed, and everything forgotten."""
        self.failures.clear()
        self.open_until = CLOSED
        self.opened = 0
        self.last_kind = None

    def state(self, *, now: float) -> str:
        """closed, open or half-open."""
        if self.open_until == CLOSED:
            return "closed"
        return "open" if self.open_until > now else "half-open"

    def describe(self, *, now: float) -> dict[str, Any]:
        """For the snapshot."""
        return {
            "state": self.state(now=now),
            "last_failure": self.last_kind,
            "opens_again_in_seconds": max(0.0, self.open_until - now)
            if self.open_until != CLOSED
            else None,
        }


class BreakerBook(Generic[K]):
    """Breakers of whatever failed at least once since it last worked."""

    def __init__(self) -> None:
        self._breakers: dict[K, Breaker] = {}

    def __len__(self) -> int:
        return len(self._breakers)

    def fail(self, key: K, kind: str, *, now: float) -> float:
        """Count a failure and return until when the key is out (-inf: still in)."""
        if kind not in KINDS:
            raise ValueError(f"Unknown failure kind '{kind}'; known are {', '.join(KINDS)}.")
        breaker = self._breakers.setdefault(key, Breaker())
        breaker.fail(kind, now=now)
        return breaker.open_until

    def follow(self, key: K, kind: str, *, until: float) -> float:
        """A peer opened its breaker of the key; ours is open at least as long. Returns its end."""
        breaker = self._breakers.setdefault(key, Breaker())
        breaker.last_kind = kind
        breaker.opened = max(1, breaker.opened)
        breaker.open_until = max(breaker.open_until, until)
        return breaker.open_until

    def succeed(self, key: K) -> bool:
        """Close the key's breaker; True when there was one."""
        return self._breakers.pop(key, None) is not None

    def of(self, key: K) -> Breaker:
        """The key's breaker; a fresh closed one when nothing failed."""
        return self._breakers.get(key) or Breaker()

    def keep_only(self, is_kept: Callable[[K], bool]) -> None:
        """Forget what is no longer there."""
        self._breakers = {key: breaker for key, breaker in self._breakers.items() if is_kept(key)}
