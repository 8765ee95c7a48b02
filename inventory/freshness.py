"""How old an observation may be before it says nothing about the present."""

from datetime import datetime, timedelta

from django.utils import timezone

STALE_AFTER_SECONDS = 600
"""After ten minutes the console shows values as last known; health is unknown from then on."""
CLOCK_TOLERANCE_SECONDS = 30
"""An observation may be this far in the future before the node's clock is to be set."""


def cutoff(now: datetime | None = None) -> datetime:
    """Observations before this time are stale."""
    return (now or timezone.now()) - timedelta(seconds=STALE_AFTER_SECONDS)


def is_stale(observed_at: datetime | None, *, now: datetime) -> bool:
    """True if nothing was observed, or too long ago."""
    return observed_at is None or observed_at < cutoff(now)
