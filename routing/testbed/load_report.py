"""What a load run saw: one outcome per request, and the figures of the run (pure)."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Outcome:
    """One request. Times are seconds of the generator's clock, None until they happened."""

    index: int
    sent_at: float
    first_at: float | None = None
    last_at: float | None = None
    ended_at: float | None = None
    failure: str | None = None
    """Why it failed, as a short code; None while under way and when all went well."""
    retried: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the whole answer came."""
        return self.failure is None and self.ended_at is not None

    @property
    def ttft(self) -> float | None:
        """Seconds from sending to the first event."""
        return None if self.first_at is None else self.first_at - self.sent_at

    @property
    def tpot(self) -> float | None:
        """Seconds per token after the first."""
        tokens = self.completion_tokens
        if self.first_at is None or self.last_at is None or tokens is None or tokens < 2:
            return None
        return (self.last_at - self.first_at) / (tokens - 1)

    @property
    def e2e(self) -> float | None:
        """Seconds from sending to the end of the answer."""
        return None if self.ended_at is None else self.ended_at - self.sent_at


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and percentiles in seconds; None when nothing was measured."""

    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """Where a run is, for somebody who watches."""

    elapsed_seconds: float
    sent: int
    ok: int
    failed: int
    in_flight: int
    retried_on_other_router: int


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Figures of a run. Latencies are over successful requests; failures stand beside them."""

    sent: int
    ok: int
    failed: int
    retried_on_other_router: int
    duration_seconds: float | None
    """First send to last completion: what throughput is divided by."""
    output_tokens_per_second: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    prefix_hit_rate: float | None
    """Share of prompt tokens that engines did not compute, 0 to 1; None if nobody reported it."""
    ttft_seconds: Spread
    tpot_seconds: Spread
    e2e_seconds: Spread
    max_send_lag_seconds: float
    """How late the generator itself was at worst; large values void the run."""
    within_slo: int | None = None
    """Requests whose first token and token rate met the targets; None without targets."""
    goodput_per_second: float | None = None
    """The same, per second of the run."""
    forgotten: int = 0
    """Older requests that no figure here covers, because a long run keeps only its latest."""
    failures_by_reason: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON-able values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Targets:
    """What a request has to meet to count as goodput; seconds, None asks for nothing."""

    ttft_seconds: float | None = None
    tpot_seconds: float | None = None

    def met_by(self, outcome: Outcome) -> bool:
        """Whether a successful request met them; what was not measured did not."""
        return _at_most(outcome.ttft, self.ttft_seconds) and (
            outcome.completion_tokens == 1 or _at_most(outcome.tpot, self.tpot_seconds)
        )


def _at_most(value: float | None, target: float | None) -> bool:
    return target is None or (value is not None and value <= target)


def summarize(
    outcomes: Iterable[Outcome],
    *,
    max_send_lag_seconds: float,
    forgotten: int = 0,
    targets: Targets | None = None,
) -> LoadReport:
    """Figures over all outcomes of a run. Requests that never ended count as failed."""
    outcomes = list(outcomes)
    good = [outcome for outcome in outcomes if outcome.ok]
    reasons = Counter(outcome.failure or "unfinished" for outcome in outcomes if not outcome.ok)
    prompt = _total(outcome.prompt_tokens for outcome in good)
    completion = _total(outcome.completion_tokens for outcome in good)
    counted = [outcome for outcome in good if outcome.cached_tokens is not None]
    cached = _total(outcome.cached_tokens for outcome in counted)
    asked = _total(outcome.prompt_tokens for outcome in counted)
    seconds = _duration(good)
    within = None if targets is None else sum(targets.met_by(outcome) for outcome in good)
    return LoadReport(
        sent=len(outcomes),
        ok=len(good),
        failed=len(outcomes) - len(good),
        retried_on_other_router=sum(outcome.retried for outcome in outcomes),
        duration_seconds=seconds,
        output_tokens_per_second=completion / seconds if completion and seconds else None,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        prefix_hit_rate=cached / asked if cached is not None and asked else None,
        ttft_seconds=spread(outcome.ttft for outcome in good),
        tpot_seconds=spread(outcome.tpot for outcome in good),
        e2e_seconds=spread(outcome.e2e for outcome in good),
        max_send_lag_seconds=max_send_lag_seconds,
        within_slo=within,
        goodput_per_second=within / seconds if within is not None and seconds else None,
        forgotten=forgotten,
        failures_by_reason=dict(sorted(reasons.items())),
    )


def spread(values: Iterable[float | None]) -> Spread:
    """Mean and percentiles (nearest rank) of the values that are known."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return Spread(None, None, None, None)
    ranks = (known[max(0, math.ceil(share * len(known)) - 1)] for share in (0.5, 0.9, 0.99))
    return Spread(math.fsum(known) / len(known), *ranks)


def _duration(good: list[Outcome]) -> float | None:
    ends = [outcome.ended_at for outcome in good if outcome.ended_at is not None]
    if not ends:
        return None
    return max(ends) - min(outcome.sent_at for outcome in good)


def _total(values: Iterable[int | None]) -> int | None:
    """Sum of the known values; None when none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
