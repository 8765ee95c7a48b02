"""What an operator should know about a pool's endpoints: found by somebody, until it is over."""

from typing import Any

import msgspec

from routing.core.table import Instance

MOST_FINDINGS = 1000


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it should be; requests are served all the same."""

    code: str
    message: str
    """A sentence for people."""
    since: float
    """Seconds on the router's monotonic clock."""


class Findings:
    """By code and endpoint instance; what is told again keeps its begin.

    Without an instance a finding is about the pool as a whole.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[str, Instance | None], Finding] = {}

    def tell(self, code: str, instance: Instance | None, message: str, *, now: float) -> None:
        """Something is not as it should be."""
        key = (code, instance)
        before = self._held.get(key)
        if before is None and len(self._held) >= MOST_FINDINGS:
            return
        since = now if before is None else before.since
        self._held[key] = Finding(code=code, message=message, since=since)

    def settle(self, code: str, instance: Instance | None) -> None:
        """It is over, or was never so."""
        self._held.pop((code, instance), None)

    def keep_alive_only(self) -> None:
        """Forget what concerns instances that are gone."""
        self._held = {
            (code, instance): finding
            for (code, instance), finding in self._held.items()
            if instance is None or instance.is_alive
        }

    def describe(self, *, now: float) -> list[dict[str, Any]]:
        """As JSON-able values, in the order in which they were found."""
        return [
            {
                "code": finding.code,
                "endpoint": None if instance is None else instance.spec.id,
                "instance": None if instance is None else instance.spec.instance,
                "message": finding.message,
                "age_seconds": round(now - finding.since, 3),
            }
            for (_, instance), finding in self._held.items()
        ]
