"""Raw events are kept for 35 days; hours of usage stay."""

from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.metering.models import StaleHour, UsageEventRow

KEEP_EVENTS = timedelta(days=35)


def delete_old_events(*, now: datetime | None = None) -> int:
    """Delete events that are summed since long; returns how many.

    Events of an hour that waits for its sum stay until it has been made.
    """
    # Whole hours only: half an hour of events would replace the sum of a whole one.
    limit = ((now or timezone.now()) - KEEP_EVENTS).replace(minute=0, second=0, microsecond=0)
    waiting = StaleHour.objects.filter(hour__lt=limit).values("hour")
    deleted, _ = UsageEventRow.objects.filter(ended_at__lt=limit).exclude(hour__in=waiting).delete()
    return deleted
