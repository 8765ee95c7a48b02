"""Guards of a wave: numbers that must not be passed while it is observed. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.serving import traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What routers saw since the wave's engines were added; None is "no data"."""

    requests: int
    failed_share: float | None
    ttft_p95_at_least: float | None
    ttft_p95_at_most: float | None
    """The p95 lies in a bucket of the histogram; infinite above the last one is None."""
    ttft_p95_before_at_most: float | None
    """Upper edge of the p95 until the wave began."""

    def as_json(self) -> dict[str, Any]:
        """Plain values for a JSON column."""
        return {name: getattr(self, name) for name in self.__slots__}


def look(before: Mapping[str, Any], added: Mapping[str, Any], after: Mapping[str, Any]) -> Look:
    """Compare looks at the traffic: when the wave began, when its engines were added, and last."""
    empty = {"total": 0, "failed": 0}
    requests, share = traffic.failed_share(added.get("requests") or empty, after["requests"])
    edges = traffic.quantile(added.get("ttft") or {}, after["ttft"], 0.95)
    lower, upper = edges if edges else (None, None)
    earlier = traffic.quantile({}, before.get("ttft") or {}, 0.95)
    return Look(
        requests=requests,
        failed_share=share,
        ttft_p95_at_least=lower,
        ttft_p95_at_most=None if upper is None or math.isinf(upper) else upper,
        ttft_p95_before_at_most=None if earlier is None or math.isinf(earlier[1]) else earlier[1],
    )


def tripped(seen: Look, limits: Mapping[str, float]) -> str:
    """The sentence of the guard that was passed, "" if none was; missing numbers trip nothing.

    TTFT trips only if it is also worse than before the wave, which did not cause what was there.
    """
    if seen.requests < limits.get("min_requests", 0):
        return ""
    share = limits.get("max_error_share")
    if share is not None and seen.failed_share is not None and seen.failed_share > share:
        return (
            f"{seen.failed_share:.1%} of {seen.requests} requests failed; the guard is {share:.1%}."
        )
    limit, found = limits.get("ttft_p95_seconds"), seen.ttft_p95_at_least
    if limit is None or found is None or found < max(limit, seen.ttft_p95_before_at_most or 0.0):
        return ""
    return f"TTFT p95 is at least {found:g} s; the guard is {limit:g} s."
