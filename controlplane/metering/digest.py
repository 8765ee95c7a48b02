"""Digest of durations: counts in buckets whose bounds grow by a constant factor.

A value x > 0 falls into bucket ceil(log_GAMMA(x)); the bucket's estimate is the harmonic-mean point
2·GAMMA^i / (GAMMA + 1), at most (GAMMA - 1) / (GAMMA + 1) = 1.96 % away from any value in it
(Masson, Rim, Lee: DDSketch, VLDB 2019). Digests merge by adding counts, in any order.
"""

import math
from collections.abc import Iterable, Mapping

GAMMA = 1.04
RELATIVE_ERROR = (GAMMA - 1) / (GAMMA + 1)
SMALLEST_SECONDS = 1e-6
"""Shorter durations count as this one; nothing that is measured here is shorter."""

Digest = dict[str, int]
"""Count by bucket index; the index is text because JSON has no other keys."""

_LOG_GAMMA = math.log(GAMMA)


def bucket_of(seconds: float | None) -> int | None:
    """Index of the bucket that a duration falls into; None for an unknown one."""
    if seconds is None or not math.isfinite(seconds):
        return None
    return math.ceil(math.log(max(seconds, SMALLEST_SECONDS)) / _LOG_GAMMA)


def digest_of(values: Iterable[float | None]) -> Digest:
    """Digest of durations in seconds; unknown ones are left out."""
    counts: dict[int, int] = {}
    for value in values:
        index = bucket_of(value)
        if index is not None:
            counts[index] = counts.get(index, 0) + 1
    return from_counts(counts)


def from_counts(counts: Mapping[int, int]) -> Digest:
    """Digest of counts by bucket index, in index order, so that equal digests are equal bytes."""
    return {str(index): counts[index] for index in sorted(counts) if counts[index]}


def merge(digests: Iterable[Mapping[str, int]]) -> Digest:
    """One digest of all values of several."""
    counts: dict[int, int] = {}
    for digest in digests:
        for index, count in digest.items():
            counts[int(index)] = counts.get(int(index), 0) + count
    return from_counts(counts)


def count(digest: Mapping[str, int]) -> int:
    """How many values a digest holds."""
    return sum(digest.values())


def quantile(digest: Mapping[str, int], share: float) -> float | None:
    """Estimate in seconds of the smallest value with at least `share` (0 to 1) at or below it.

    Within RELATIVE_ERROR of the exact one; None if the digest is empty.
    """
    total = count(digest)
    if not total:
        return None
    rank = max(1, math.ceil(share * total))
    seen = 0
    index = 0
    for index in sorted(int(key) for key in digest):
        seen += digest[str(index)]
        if seen >= rank:
            break
    return 2 * GAMMA**index / (GAMMA + 1)
