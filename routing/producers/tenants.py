"""Tenants' limits at this router: requests per second (token bucket) and concurrent requests.

Each router enforces the document's numbers by itself: with two routers, a tenant that uses both
gets up to twice as much.
"""

from routing.core.document import TenantSpec

BURST_SECONDS = 1.0
"""A bucket holds what a tenant may send in this time, and at least one request."""


class TenantLimits:
    """Buckets of tenants that have a rate; refilled when looked at."""

    def __init__(self, tenants: tuple[TenantSpec, ...], *, now: float) -> None:
        self._specs = {spec.tenant: spec for spec in tenants}
        self._buckets: dict[str, tuple[float, float]] = {
            spec.tenant: (_size(spec), now) for spec in tenants if spec.requests_per_second
        }

    def spec(self, tenant: str) -> TenantSpec | None:
        """The tenant's limits, if the document has any."""
        return self._specs.get(tenant)

    def apply(self, tenants: tuple[TenantSpec, ...], *, now: float) -> None:
        """Take another document's limits; a bucket keeps its level, up to its size."""
        old = self._buckets
        self._specs = {spec.tenant: spec for spec in tenants}
        self._buckets = {}
        for spec in tenants:
            if spec.requests_per_second:
                level, at = old.get(spec.tenant, (_size(spec), now))
                self._buckets[spec.tenant] = (min(level, _size(spec)), at)

    def seconds_until_allowed(self, tenant: str, *, now: float) -> float:
        """0 when a request may be sent at this moment."""
        spec = self._specs.get(tenant)
        if spec is None or not spec.requests_per_second:
            return 0.0
        return max(0.0, (1.0 - self._level(spec, now=now)) / spec.requests_per_second)

    def take(self, tenant: str, *, now: float) -> None:
        """Count one request that was sent; the level may go below zero by retries."""
        spec = self._specs.get(tenant)
        if spec is not None and spec.requests_per_second:
            self._buckets[tenant] = (self._level(spec, now=now) - 1.0, now)

    def _level(self, spec: TenantSpec, *, now: float) -> float:
        level, at = self._buckets[spec.tenant]
        return min(_size(spec), level + max(0.0, now - at) * (spec.requests_per_second or 0.0))


def _size(spec: TenantSpec) -> float:
    return max(1.0, (spec.requests_per_second or 0.0) * BURST_SECONDS)
