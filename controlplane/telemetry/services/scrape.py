"""Read engines' pages into samples and counters, one scrape at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from controlplane.telemetry.counters import growth, was_restarted
from controlplane.telemetry.models import EngineCounter, EngineSample, ScrapeTarget
from controlplane.telemetry.sources import direct

SCRAPE_SECONDS = 5.0
"""Distance of two scrapes in the schedule; coverage counts against it."""
MAX_TARGETS = 4096

_SCRAPE_LOCK = 0x636F6E73
"""Key of the advisory lock that keeps two workers from scraping at once."""

_SUMS = {
    "prompt_tokens_total": "prompt_tokens",
    "generation_tokens_total": "generation_tokens",
    "prefix_queries_total": "prefix_queries",
    "prefix_hits_total": "prefix_hits",
}
_SOURCES = {
    "local_compute": "prompt_computed_tokens",
    "local_cache_hit": "prompt_cached_tokens",
    "external_kv_transfer": "prompt_transferred_tokens",
}


@dataclass(frozen=True, slots=True)
class ScrapeCount:
    """How many engines answered and how many did not."""

    read: int
    failed: int


def scrape_engines() -> ScrapeCount | None:
    """Read every active engine once; None if another worker is doing it.

    The lock ends with the transaction, so a worker that dies leaves nothing behind.
    """
    with transaction.atomic():
        if not _alone():
            return None
        targets = list(
            ScrapeTarget.objects.filter(active=True, kind=ScrapeTarget.Kind.ENGINE).order_by("pk")[
                :MAX_TARGETS
            ]
        )
        return _scrape(targets)


def scrape_engine(*, instance: str) -> ScrapeCount:
    """Read one instance; for the moment before its process is stopped, so that nothing is lost."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SCRAPE_LOCK])
        return _scrape(list(ScrapeTarget.objects.filter(instance=instance, active=True)))


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_SCRAPE_LOCK])
        return bool(cursor.fetchone()[0])


def _scrape(targets: Sequence[ScrapeTarget]) -> ScrapeCount:
    readings = direct.read_engines(
        {str(target.pk): target.url for target in targets},
        {str(target.pk): target.engine for target in targets},
    )
    counters = {row.target_id: row for row in EngineCounter.objects.filter(target__in=targets)}
    samples = []
    for target in targets:
        reading = readings[str(target.pk)]
        _note(target, reading)
        if reading.error:
            continue
        counter = counters.setdefault(target.pk, EngineCounter(target=target, at=reading.at))
        samples.append(_sample(target, counter, reading))
        _advance(counter, samples[-1], reading)
    _store(targets, [counters[sample.target_id] for sample in samples], samples)
    return ScrapeCount(read=len(samples), failed=len(targets) - len(samples))


def _note(target: ScrapeTarget, reading: direct.Reading) -> None:
    """Write on the target whether its source speaks."""
    if reading.error:
        target.failing_since = target.failing_since or reading.at
    else:
        target.failing_since, target.last_ok_at = None, reading.at
    target.last_error = reading.error


def _sample(target: ScrapeTarget, counter: EngineCounter, reading: direct.Reading) -> EngineSample:
    signals, counters = reading.signals, reading.counters
    if signals is None or counters is None:
        raise ValueError("A reading without an error has signals and counters.")
    grown = growth(
        counter.raw or None,
        counters.as_dict(),
        restarted=was_restarted(counter.process_start, signals.process_start),
        from_start=target.counts_from_start,
    )
    return EngineSample(
        target=target,
        at=reading.at,
        seconds=_seconds(target, counter, reading.at),
        running=_whole(signals.running),
        waiting=_whole(signals.waiting),
        kv_usage=signals.kv_usage,
        **grown,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _seconds(target: ScrapeTarget, counter: EngineCounter, at: datetime) -> float:
    """Time that a sample stands for: since the one before, but a gap is not filled."""
    before = counter.at if counter.raw else target.created_at
    return min(max((at - before).total_seconds(), 0.0), 2 * SCRAPE_SECONDS)


def _advance(counter: EngineCounter, sample: EngineSample, reading: direct.Reading) -> None:
    """Move the counter's totals by what the sample grew."""
    signals, counters = reading.signals, reading.counters
    if signals is None or counters is None:
        return
    if was_restarted(counter.process_start, signals.process_start):
        counter.resets += 1
    for total, name in _SUMS.items():
        setattr(counter, total, _plus(getattr(counter, total), getattr(sample, name)))
    by_source: dict[str, Any] = counter.prompt_tokens_by_source
    for source, name in _SOURCES.items():
        by_source[source] = _plus(by_source.get(source), getattr(sample, name))
    counter.raw, counter.at = counters.as_dict(), reading.at
    counter.process_start = signals.process_start
    counter.running, counter.waiting = sample.running, sample.waiting
    counter.kv_usage = sample.kv_usage


def _plus(total: int | None, grown: int | None) -> int | None:
    return total if grown is None else (total or 0) + grown


def _store(
    targets: Sequence[ScrapeTarget],
    counters: Sequence[EngineCounter],
    samples: Sequence[EngineSample],
) -> None:
    """Three statements for any number of engines."""
    ScrapeTarget.objects.bulk_update(targets, ["last_ok_at", "failing_since", "last_error"])
    EngineSample.objects.bulk_create(samples)
    EngineCounter.objects.bulk_create(
        counters,
        update_conflicts=True,
        unique_fields=["target"],
        update_fields=[
            "updated_at", "at", "process_start", "raw", "resets", "prompt_tokens_by_source",
            "running", "waiting", "kv_usage", *_SUMS,
        ],
    )  # fmt: skip
