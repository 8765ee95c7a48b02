"""Routers' tokens beside engines' tokens, per pool and hour."""

from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.metering import selectors
from controlplane.metering.models import Reconciliation

HOUR = timedelta(hours=1)
RECENT_HOURS = 2
"""Running hour and the one before, whose last samples and events may come late."""


def reconcile_hour(*, pool: str, hour: datetime) -> Reconciliation:
    """Compare the two counts of one hour; running it again gives the same row.

    A client's request ends on exactly one answering engine, which counts the whole prompt and its
    output; prefill engines count the same prompt a second time and are left out.
    """
    gateway = selectors.gateway_tokens(pool=pool, hour=hour)
    engine = selectors.engine_tokens(pool=pool, hour=hour)
    probes = selectors.probe_tokens(pool=pool, hour=hour)
    row, _ = Reconciliation.objects.update_or_create(
        pool=pool,
        hour=hour,
        defaults={
            "gateway_tokens": gateway,
            "engine_tokens": engine,
            "probe_tokens": probes,
            "unattributed_tokens": None if engine is None else engine - probes - gateway,
            "source": selectors.evidence_of_pool(pool),
        },
    )
    return row


def reconcile_recent(*, now: datetime | None = None) -> int:
    """Reconcile every pool that did something in the last hours; returns the number of rows."""
    current = (now or timezone.now()).replace(minute=0, second=0, microsecond=0)
    since = current - (RECENT_HOURS - 1) * HOUR
    active = selectors.active_pool_hours(since=since)
    for pool, hour in active:
        reconcile_hour(pool=pool, hour=hour)
    return len(active)
