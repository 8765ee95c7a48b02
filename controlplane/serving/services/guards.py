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

    def as_json(self) -> dict[str, Any]:
        """Plain values for a JSON column."""
        return {name: getattr(self, name) for name in self.__slots__}


def look(before: Mapping[str, Any], after: Mapping[str, Any]) -> Look:
    """Compare two looks at the traffic."""
    empty = {"total": 0, "failed": 0}
    requests, share = traffic.failed_share(before.get("requests") or empty, after["requests"])
    edges = traffic.quantile(before.get("ttft") or {}, after["ttft"], 0.95)
    lower, upper = edges if edges else (None, None)
    return Look(
        requests=requests,
        failed_share=share,
        ttft_p95_at_least=lower,
        ttft_p95_at_most=None if upper is None or math.isinf(upper) else upper,
    )


def tripped(seen: Look, limits: Mapping[str, float]) -> str:
    """The sentence of the guard that was passed, "" if none was; missing numbers trip nothing."""
    if seen.requests < limits.get("min_requests", 0):
        return ""
    share = limits.get("max_error_share")
    if share is not None and seen.failed_share is not None and seen.failed_share > share:
        return (
            f"{seen.failed_share:.1%} of {seen.requests} requests failed; the guard is {share:.1%}."
        )
    ttft = limits.get("ttft_p95_seconds")
    if ttft is not None and seen.ttft_p95_at_least is not None and seen.ttft_p95_at_least >= ttft:
        return f"TTFT p95 is at least {seen.ttft_p95_at_least:g} s; the guard is {ttft:g} s."
    return ""
