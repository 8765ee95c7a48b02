"""Decisions are kept for days and up to a number of rows; sums of shadow policies for 90 days."""

from datetime import timedelta

from django.utils import timezone

from controlplane.decisions.models import Decision, ShadowHour

KEEP = timedelta(days=7)
KEEP_ROWS = 200_000
KEEP_SHADOW = timedelta(days=90)
BATCH = 5_000
MAX_BATCHES = 100
"""Per run, so that no run holds up the worker; the next one goes on."""


def delete_old_decisions(*, keep_rows: int = KEEP_ROWS) -> int:
    """Delete what is too old or too much, oldest first, in batches; returns how many."""
    now, deleted = timezone.now(), 0
    ShadowHour.objects.filter(hour__lt=now - KEEP_SHADOW).delete()
    limit = now - KEEP
    newest_kept = Decision.objects.order_by("-at", "pk").values_list("at", flat=True)
    beyond = newest_kept[keep_rows : keep_rows + 1].first()
    if beyond is not None:
        limit = max(limit, beyond)
    for _ in range(MAX_BATCHES):
        batch = Decision.objects.filter(at__lte=limit).order_by("at").values_list("pk", flat=True)
        count, _by_table = Decision.objects.filter(pk__in=list(batch[:BATCH])).delete()
        deleted += count
        if count < BATCH:
            break
    return deleted
