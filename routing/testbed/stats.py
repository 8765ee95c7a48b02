"""Counters and histograms of one engine; buckets as vLLM's metrics page has them."""

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import partial

_TOKENS: tuple[float, ...] = (
    1.0,
    2.0,
    5.0,
    10.0,
    20.0,
    50.0,
    100.0,
    200.0,
    500.0,
    1000.0,
    2000.0,
    5000.0,
)
_STEP_TOKENS: tuple[float, ...] = (1.0, *(float(2**power) for power in range(3, 15)))
_FIRST_TOKEN: tuple[float, ...] = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
)
_FIRST_TOKEN += (7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)
_GAPS: tuple[float, ...] = (
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
)
_GAPS += (20.0, 40.0, 80.0)
_LATENCY: tuple[float, ...] = (
    0.3,
    0.5,
    0.8,
    1.0,
    1.5,
    2.0,
    2.5,
    5.0,
    10.0,
    15.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
)
_LATENCY += (120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)
_TRANSFER: tuple[float, ...] = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0)
_BYTES: tuple[float, ...] = tuple(float(2**power) for power in range(11, 35, 2))
_DESCRIPTORS: tuple[float, ...] = (
    10.0,
    20.0,
    30.0,
    50.0,
    75.0,
    100.0,
    200.0,
    400.0,
    1000.0,
    2000.0,
    4000.0,
)
_DESCRIPTORS += (10000.0, 20000.0, 50000.0)

FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")


class Histogram:
    """Counts per bucket, total count and sum of what was observed."""

    __slots__ = ("bounds", "count", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.count = 0
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value, `times` over when several requests had the same."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.count += times
        self.total += value * times


@dataclass(slots=True)
class Stats:
    """What one engine counted since its start. Tokens unless the name says otherwise."""

    prompt: int = 0
    generation: int = 0
    local_cache_hit: int = 0
    external_transfer: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    external_queries: int = 0
    external_hits: int = 0
    preemptions: int = 0
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FINISH_REASONS, 0))
    failed_transfers: int = 0
    expired_holds: int = 0
    late_notifications: int = 0

    request_prompt: Histogram = field(default_factory=partial(Histogram, _TOKENS))
    request_generation: Histogram = field(default_factory=partial(Histogram, _TOKENS))
    step_tokens: Histogram = field(default_factory=partial(Histogram, _STEP_TOKENS))
    max_generation: Histogram = field(default_factory=partial(Histogram, _TOKENS))
    params_n: Histogram = field(default_factory=partial(Histogram, (1.0, 2.0, 5.0, 10.0, 20.0)))
    params_max_tokens: Histogram = field(default_factory=partial(Histogram, _TOKENS))
    first_token: Histogram = field(default_factory=partial(Histogram, _FIRST_TOKEN))
    inter_token: Histogram = field(default_factory=partial(Histogram, _GAPS))
    per_output_token: Histogram = field(default_factory=partial(Histogram, _GAPS))
    e2e: Histogram = field(default_factory=partial(Histogram, _LATENCY))
    queue: Histogram = field(default_factory=partial(Histogram, _LATENCY))
    inference: Histogram = field(default_factory=partial(Histogram, _LATENCY))
    prefill: Histogram = field(default_factory=partial(Histogram, _LATENCY))
    decode: Histogram = field(default_factory=partial(Histogram, _LATENCY))
    request_preemptions: Histogram = field(
        default_factory=partial(Histogram, (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0))
    )
    prefill_computed: Histogram = field(default_factory=partial(Histogram, _TOKENS))
    transfer_seconds: Histogram = field(default_factory=partial(Histogram, _TRANSFER))
    transfer_post: Histogram = field(default_factory=partial(Histogram, (0.001, *_TRANSFER)))
    transfer_bytes: Histogram = field(default_factory=partial(Histogram, _BYTES))
    transfer_descriptors: Histogram = field(default_factory=partial(Histogram, _DESCRIPTORS))
