"""Numbers of the demo's past: demand by hour and what each accelerator made of it. Pure.

A day and a week have their shape (local time of the site is UTC+9), noise is seeded, and one
accelerator is slow from a moment on. Speeds are of the order of the published three-vendor
benchmark that the demo site is modelled on; every row made from here says `simulated`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from controlplane.metering.digest import SMALLEST_SECONDS, Digest, bucket_of, from_counts

SLOW_FACTOR = 3.0
PROMPT_TOKENS = 2_600
HIT_RATE = 0.58
SECONDS = 3600
_QUANTILES = 60
_NORMAL = np.sort(np.random.default_rng(2).standard_normal(_QUANTILES))
"""Fixed shape of a latency distribution; its scale and width come with each hour."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What one accelerator of a node does in its role."""

    busy_least: float
    busy_span: float
    """Busy share is `busy_least` at night and `busy_least + busy_span` at the peak."""
    output_tokens_per_second: float
    prefill_tokens_per_second: float
    ttft_median: float
    tpot_median: float


SPEEDS = {
    "prefill": Speed(0.10, 0.45, 0.0, 15_000.0, 0.0, 0.0),
    "decode": Speed(0.25, 0.60, 330.0, 0.0, 0.21, 0.0165),
    "both": Speed(0.22, 0.58, 265.0, 9_000.0, 0.25, 0.0210),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorHour:
    """What one accelerator did in one hour; token counts are whole."""

    busy: float
    memory: float
    output_tokens: int
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    transferred_tokens: int
    requests: int
    prefill_seconds: float
    decode_seconds: float
    samples: int

    @property
    def output_tokens_per_second(self) -> float:
        """While busy."""
        return self.output_tokens / (self.busy * SECONDS)


def load_at(hour: datetime, noise: float) -> float:
    """Demand of an hour as a share of the peak, 0 to 1."""
    local = hour + timedelta(hours=9)
    day = 0.5 - 0.5 * np.cos((local.hour - 4) / 24 * 2 * np.pi)
    week = 0.62 if local.weekday() >= 5 else 1.0
    return float(np.clip(day * week * (1 + 0.08 * noise), 0.03, 1.0))


def answering_hour(
    role: str, load: float, rng: np.random.Generator, *, slow: bool = False
) -> AcceleratorHour:
    """An hour of an accelerator that answers clients (decode or both)."""
    speed = SPEEDS[role]
    busy = float(np.clip(speed.busy_least + speed.busy_span * load + rng.normal(0, 0.015), 0.05, 1))
    rate = speed.output_tokens_per_second * (0.75 + 0.25 * load) * (1 + rng.normal(0, 0.02))
    if slow:
        # It gets fewer requests, is busy longer with each, and makes a third of the output.
        busy, rate = min(busy * 1.3, 0.98), rate / SLOW_FACTOR
    output = round(rate * busy * SECONDS)
    requests = max(1, output // 150)
    prompt = requests * PROMPT_TOKENS
    cached = round(prompt * (HIT_RATE + rng.normal(0, 0.02)))
    fresh = prompt - cached
    computed = round(fresh * 0.004) if role == "decode" else fresh
    return AcceleratorHour(
        busy=busy,
        memory=float(np.clip(0.35 + 0.5 * load + rng.normal(0, 0.02), 0, 1)),
        output_tokens=output,
        prompt_tokens=prompt,
        cached_tokens=cached,
        computed_tokens=computed,
        transferred_tokens=fresh - computed,
        requests=requests,
        prefill_seconds=computed / 9_000.0,
        decode_seconds=output * speed.tpot_median * (SLOW_FACTOR if slow else 1),
        samples=_samples(rng),
    )


def prefill_hour(
    computed: int, requests: int, load: float, rng: np.random.Generator
) -> AcceleratorHour:
    """An hour of an accelerator that computed so many prompt tokens for decode engines."""
    speed = SPEEDS["prefill"]
    return AcceleratorHour(
        busy=float(np.clip(speed.busy_least + speed.busy_span * load + rng.normal(0, 0.015), 0, 1)),
        memory=float(np.clip(0.30 + 0.4 * load + rng.normal(0, 0.02), 0, 1)),
        output_tokens=requests,
        prompt_tokens=computed,
        cached_tokens=0,
        computed_tokens=computed,
        transferred_tokens=0,
        requests=requests,
        prefill_seconds=computed / speed.prefill_tokens_per_second,
        decode_seconds=0.0,
        samples=_samples(rng),
    )


def latency(count: int, *, median: float, width: float) -> Digest:
    """Digest of `count` durations around a median, log-normal."""
    each, over = divmod(count, _QUANTILES)
    counts: dict[int, int] = {}
    for place, normal in enumerate(_NORMAL):
        number = each + (1 if place < over else 0)
        index = bucket_of(max(float(median * np.exp(width * normal)), SMALLEST_SECONDS))
        if number and index is not None:
            counts[index] = counts.get(index, 0) + number
    return from_counts(counts)


def shared_out(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers by shares that sum to the total."""
    bounds = np.rint(np.cumsum(shares) / sum(shares) * total).astype(int)
    return [int(part) for part in np.diff(bounds, prepend=0)]


def _samples(rng: np.random.Generator) -> int:
    """Samples of 720; now and then a scrape was late for half of the hour."""
    return 390 if rng.random() < 0.01 else 720
