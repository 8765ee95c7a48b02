"""Fetch segments from every router, and acknowledge what is stored."""

import logging
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.metering import selectors
from controlplane.metering.models import RouterProgress, SegmentRefusal
from controlplane.metering.services.ingest import Ingested, ingest_segment
from controlplane.metering.sources import router as source
from controlplane.tenancy.models import User

logger = logging.getLogger(__name__)

REFUSED = (
    "The segment from event {first} on was refused: see usage-refusals for the reason, mend the"
    " router, or skip the segment."
)
BEHIND = (
    "Its newest event is {last}, but it was read through event {read}: it lost its spool, or"
    " another router had this name before. Start it under a name of its own."
)
MAX_PAGES = 20
"""Pages per router and run; what is left comes with the next run."""


def pull_routers() -> dict[str, int]:
    """Fetch from every router in use; returns the stored segments by router.

    A router that does not answer is noted and disturbs no other.
    """
    return {
        name: pull_router(name=name, address=address)
        for name, address in selectors.router_addresses().items()
    }


def pull_router(*, name: str, address: source.RouterAddress) -> int:
    """Fetch, store, then acknowledge, page by page; returns the number of stored segments.

    Acknowledged is only what has been committed: a crash in between delivers the page again. A
    refused segment stops the router's usage there until a person decides (`skip_segment`), because
    going on would let the router delete it.
    """
    stored = 0
    try:
        for _ in range(MAX_PAGES):
            answer = source.fetch_segments(address, after=_read_through(name))
            if {answer.router, *(segment.router for segment in answer.segments)} != {name}:
                _note(name, None, error=f"It answered as {answer.router[:100]!r}, not as {name!r}.")
                break
            if answer.closed_through < (read := _read_through(name)):
                _note(name, None, error=BEHIND.format(last=answer.closed_through, read=read))
                break
            outcomes = _ingest_in_order(answer)
            stored += outcomes.count(Ingested.STORED)
            taken = len(outcomes) - outcomes.count(Ingested.REFUSED)
            if taken:
                last = answer.segments[taken - 1].last_sequence
                source.acknowledge(address, sequence=last)
            if Ingested.REFUSED in outcomes:
                first = answer.segments[taken].first_sequence
                _note(name, answer, error=REFUSED.format(first=first))
                break
            if not answer.segments or _read_through(name) >= answer.closed_through:
                _note(name, answer, error="")
                break
    except source.RouterUnreachableError as error:
        _note(name, None, error=str(error)[:300])
    return stored


def _ingest_in_order(answer: source.RouterAnswer) -> list[Ingested]:
    """Outcomes of the segments up to the first that was refused."""
    outcomes = []
    for segment in answer.segments:
        outcomes.append(ingest_segment(segment))
        if outcomes[-1] is Ingested.REFUSED:
            break
    return outcomes


@transaction.atomic
def declare_router_lost(*, router: str, actor: User, reason: str) -> RouterProgress:
    """Go on without what a router has not delivered; its hours then count as complete, flagged.

    A second call changes nothing.
    """
    progress = RouterProgress.objects.select_for_update(no_key=True).get(router=router)
    permissions.require(actor, "metering.change_routerprogress", progress)
    if progress.lost_at is not None:
        return progress
    progress.lost_at, progress.lost_reason = timezone.now(), reason
    progress.save(update_fields=["lost_at", "lost_reason", "updated_at"])
    audit.record(actor=actor, action="router.declare_lost", subject=progress, reason=reason)
    return progress


@transaction.atomic
def skip_segment(*, refusal_id: UUID, actor: User, reason: str) -> RouterProgress:
    """Go on behind a refused segment; its events count as missing and are deleted at the router."""
    refusal = SegmentRefusal.objects.get(pk=refusal_id)
    progress = RouterProgress.objects.select_for_update(no_key=True).get(router=refusal.router)
    permissions.require(actor, "metering.change_routerprogress", progress)
    lost = refusal.last_sequence - progress.last_sequence
    if lost > 0:
        progress.missing_events += lost
        progress.last_sequence = refusal.last_sequence
        progress.save(update_fields=["last_sequence", "missing_events", "updated_at"])
    audit.record(actor=actor, action="segment.skip", subject=refusal, reason=reason)
    return progress


def _read_through(name: str) -> int:
    progress = RouterProgress.objects.filter(router=name).first()
    return progress.last_sequence if progress else 0


def _note(name: str, answer: source.RouterAnswer | None, *, error: str) -> None:
    """Write how far the router is read; a router that answers again is not lost any more."""
    fields: dict[str, object] = {"last_error": error}
    if answer is not None:
        fields |= {"pulled_at": timezone.now(), "lost_at": None, "lost_reason": ""}
        if not error:
            # A router whose clock is ahead cannot know what has not happened.
            told = datetime.fromtimestamp(answer.complete_until, UTC)
            fields["complete_until"] = min(told, timezone.now())
    if error:
        logger.warning("Usage of router %s: %s", name, error)
    RouterProgress.objects.update_or_create(router=name, defaults=fields)
