"""What routers say about a pool's traffic: running work, failures, time to first token. Pure."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

_BUCKET = re.compile(
    r"^consort_ttft_seconds_bucket\{(?P<labels>[^}]*)\}\s+(?P<value>\S+)", re.MULTILINE
)
_REQUESTS = re.compile(
    r"^consort_requests_total\{(?P<labels>[^}]*)\}\s+(?P<value>\S+)", re.MULTILINE
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Buckets = dict[str, float]
"""Cumulative counts by upper edge in seconds, edges as text as in the page."""


def unfinished(state: Mapping[str, Any], pool: str, endpoint_ids: Iterable[str]) -> int | None:
    """Requests that a router still has on endpoints, by its last snapshot; None if it said none."""
    snapshot = (state.get("pools") or {}).get(pool)
    if snapshot is None:
        return None
    wanted = set(endpoint_ids)
    return sum(
        int(row.get("inflight_requests") or 0)
        for row in snapshot.get("endpoints", ())
        if row["id"] in wanted
    )


def failures(states: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Requests and failed ones over all routers since they started."""
    counts = [state.get("requests") or {} for state in states]
    return {
        "total": sum(int(count.get("total") or 0) for count in counts),
        "failed": sum(int(count.get("failed") or 0) for count in counts),
    }


def answers(page: str, pool: str) -> dict[str, int]:
    """Requests of a pool that a router answered, and those it failed or refused for want of room.

    Failed are 5xx, answers that broke off, and 429; what the client did wrong is not.
    """
    total = failed = 0.0
    for match in _REQUESTS.finditer(page):
        labels = dict(_LABEL.findall(match["labels"]))
        if labels.get("pool") != pool:
            continue
        count, status = float(match["value"]), labels.get("status", "")
        total += count
        broke_off = labels.get("outcome") == "error" and status < "400"
        failed += count if status >= "500" or status == "429" or broke_off else 0.0
    return {"total": round(total), "failed": round(failed)}


def failed_share(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[int, float | None]:
    """Requests between two looks and the share that failed; None without requests.

    A router that restarted counts from 0 again; a smaller total is no information.
    """
    total, failed = after["total"] - before["total"], after["failed"] - before["failed"]
    if total <= 0 or failed < 0:
        return 0, None
    return total, failed / total


def ttft_buckets(page: str, pool: str) -> Buckets:
    """Histogram of time to first token of a pool from a router's metrics page, over policies."""
    buckets: Buckets = {}
    for match in _BUCKET.finditer(page):
        labels = dict(_LABEL.findall(match["labels"]))
        if labels.get("pool") == pool and "le" in labels:
            buckets[labels["le"]] = buckets.get(labels["le"], 0.0) + float(match["value"])
    return buckets


def added(parts: Iterable[Buckets]) -> Buckets:
    """Sum of histograms."""
    total: Buckets = {}
    for part in parts:
        for edge, count in part.items():
            total[edge] = total.get(edge, 0.0) + count
    return total


def quantile(before: Buckets, after: Buckets, share: float) -> tuple[float, float] | None:
    """Edges of the bucket in which the share of the requests between two looks lies.

    None without requests or after a reset; the upper edge is infinite above the last one.
    """
    edges = sorted(after, key=float)
    counts = [after[edge] - before.get(edge, 0.0) for edge in edges]
    if not counts or counts[-1] <= 0 or min(counts) < 0:
        return None
    lower = 0.0
    for edge, count in zip(edges, counts, strict=True):
        if count >= share * counts[-1]:
            return lower, float(edge)
        lower = float(edge)
    return lower, math.inf
