"""Take a segment of usage events exactly once, or refuse it and say why."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum

import msgspec
from django.db import DataError, transaction
from django.db.models import F
from django.utils import timezone

from controlplane.metering.buckets import openai_buckets
from controlplane.metering.digest import bucket_of
from controlplane.metering.models import (
    RouterProgress,
    SegmentRefusal,
    StaleHour,
    UsageEventRow,
    UsageSegment,
)
from routing.core import usage

DETAIL_LENGTH = 300


class Ingested(StrEnum):
    """What became of a segment."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    REFUSED = "refused"


@transaction.atomic
def ingest_segment(segment: usage.UsageSegment, *, now: datetime | None = None) -> Ingested:
    """Store the events of a segment that are not stored yet, and mark their hours as stale.

    A second delivery, and one that overlaps an earlier segment with equal events, adds only what is
    missing. A wrong checksum, sequence numbers that do not fill the range, a value that no column
    holds, or an event that differs from the stored one of its number refuse the whole segment:
    nothing of it is stored, and the router keeps it, because what is not acknowledged is not
    deleted.
    """
    now = now or timezone.now()
    progress = _locked_progress(segment)
    if _is_known(segment):
        return Ingested.DUPLICATE
    try:
        with transaction.atomic():
            _take(segment, now=now)
    except _RefusedError as refusal:
        return _refuse(segment, refusal.reason, refusal.detail, now=now)
    except (DataError, ValueError, OverflowError, OSError) as error:
        detail = f"An event has a value that cannot be stored: {error}"
        return _refuse(segment, SegmentRefusal.Reason.MALFORMED, detail, now=now)
    _advance(progress, segment)
    return Ingested.STORED


class _RefusedError(Exception):
    """The segment contradicts itself or what is stored."""

    def __init__(self, reason: SegmentRefusal.Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def _take(segment: usage.UsageSegment, *, now: datetime) -> None:
    """Store what is missing. Raises _RefusedError, or what a value raises that no column holds."""
    fault = _fault(segment)
    if fault:
        raise _RefusedError(*fault)
    stored = _stored_checksums(segment)
    rows = [_row(event) for event in segment.events]
    conflicts = [row.sequence for row in rows if stored.get(row.sequence, row.sha256) != row.sha256]
    if conflicts:
        detail = f"Event {conflicts[0]} and {len(conflicts) - 1} more differ from the stored ones."
        raise _RefusedError(SegmentRefusal.Reason.CONFLICT, detail)
    _store(segment, [row for row in rows if row.sequence not in stored], now=now)


def _locked_progress(segment: usage.UsageSegment) -> RouterProgress:
    """The router's row under lock; a router that is seen first starts at its first segment."""
    RouterProgress.objects.get_or_create(
        router=segment.router, defaults={"last_sequence": segment.first_sequence - 1}
    )
    return RouterProgress.objects.select_for_update(no_key=True).get(router=segment.router)


def _is_known(segment: usage.UsageSegment) -> bool:
    return UsageSegment.objects.filter(
        router=segment.router,
        first_sequence=segment.first_sequence,
        last_sequence=segment.last_sequence,
        sha256=segment.sha256,
    ).exists()


def _fault(segment: usage.UsageSegment) -> tuple[SegmentRefusal.Reason, str] | None:
    numbers = [event.sequence for event in segment.events]
    if not numbers or numbers != list(range(segment.first_sequence, segment.last_sequence + 1)):
        return (
            SegmentRefusal.Reason.MALFORMED,
            f"{len(numbers)} events do not fill the range; each number stands there once.",
        )
    if any(event.router != segment.router for event in segment.events):
        return SegmentRefusal.Reason.MALFORMED, "An event names another router."
    if usage.events_checksum(segment.events) != segment.sha256:
        return SegmentRefusal.Reason.CHECKSUM, "SHA-256 over the events gives another value."
    return None


def _refuse(
    segment: usage.UsageSegment, reason: SegmentRefusal.Reason, detail: str, *, now: datetime
) -> Ingested:
    """Note the refusal once per segment and count how often it came."""
    refusal, created = SegmentRefusal.objects.get_or_create(
        router=segment.router,
        first_sequence=segment.first_sequence,
        last_sequence=segment.last_sequence,
        sha256=segment.sha256[:64],
        reason=reason,
        defaults={"detail": detail[:DETAIL_LENGTH], "seen_at": now},
    )
    if not created:
        SegmentRefusal.objects.filter(pk=refusal.pk).update(
            times_seen=F("times_seen") + 1, seen_at=now
        )
    return Ingested.REFUSED


def _stored_checksums(segment: usage.UsageSegment) -> dict[int, bytes]:
    found = UsageEventRow.objects.filter(
        router=segment.router,
        sequence__range=(segment.first_sequence, segment.last_sequence),
    ).values_list("sequence", "sha256")
    return {sequence: bytes(checksum) for sequence, checksum in found}


def _store(segment: usage.UsageSegment, rows: Sequence[UsageEventRow], *, now: datetime) -> None:
    UsageEventRow.objects.bulk_create(rows, batch_size=1000)
    UsageSegment.objects.update_or_create(
        router=segment.router,
        first_sequence=segment.first_sequence,
        last_sequence=segment.last_sequence,
        defaults={"sha256": segment.sha256, "events": len(rows), "ingested_at": now},
    )
    hours = sorted({(row.pool, row.hour) for row in rows})
    # The conflict must lock the row: a mark that is merely seen may go with a sum that does not
    # know these events yet, and nobody would sum them.
    StaleHour.objects.bulk_create(
        [StaleHour(pool=pool, hour=hour) for pool, hour in hours],
        update_conflicts=True,
        unique_fields=["pool", "hour"],
        update_fields=["hour"],
    )


def _advance(progress: RouterProgress, segment: usage.UsageSegment) -> None:
    """Move on to the end of the segment; numbers that were jumped over are missing events."""
    if segment.last_sequence <= progress.last_sequence:
        return
    progress.missing_events += max(0, segment.first_sequence - progress.last_sequence - 1)
    progress.last_sequence = segment.last_sequence
    progress.save(update_fields=["last_sequence", "missing_events", "updated_at"])


def _row(event: usage.UsageEvent) -> UsageEventRow:
    buckets = openai_buckets(
        prompt_tokens=event.prompt_tokens,
        cached_tokens=event.cached_tokens,
        completion_tokens=event.completion_tokens,
    )
    ended_at = datetime.fromtimestamp(event.ended_at, UTC)
    return UsageEventRow(
        router=event.router,
        sequence=event.sequence,
        sha256=hashlib.sha256(msgspec.json.encode(event, order="sorted")).digest(),
        request_id=event.request_id,
        hour=ended_at.replace(minute=0, second=0, microsecond=0),
        pool=event.pool,
        document_version=event.document_version,
        policy=event.policy,
        tenant=event.tenant,
        project=event.project,
        key=event.key_id,
        model=event.model,
        asked_model=event.asked_model or "",
        endpoint=event.endpoint or "",
        instance=event.instance or "",
        node=event.node or "",
        role=event.role or "",
        prefill_endpoint=event.prefill_endpoint or "",
        received_at=datetime.fromtimestamp(event.received_at, UTC),
        ended_at=ended_at,
        outcome=event.outcome,
        status=event.status,
        attempt=event.attempt,
        delivered=event.delivered,
        stream=event.stream,
        counted_by=event.token_source,
        ttft_seconds=event.ttft_seconds,
        tpot_seconds=event.tpot_seconds,
        ttft_bucket=bucket_of(event.ttft_seconds),
        tpot_bucket=bucket_of(event.tpot_seconds),
        **asdict(buckets),
    )
