"""Periodic reading and rolling up; each task may run twice, late or not at all."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from controlplane.telemetry import services
from controlplane.telemetry.services.rollup import hour_of

LATE = timedelta(minutes=5)
"""For so long the hour before is summed again, for samples that came at its very end."""


@shared_task
def scrape_engines() -> None:
    """Read all engines once."""
    services.scrape_engines()


@shared_task
def roll_up() -> None:
    """Sum the running hour, and the one before it for its first minutes."""
    now = timezone.now()
    for hour in sorted({hour_of(now - LATE), hour_of(now)}):
        services.recompute_hour(hour=hour, now=now)


@shared_task
def detect_alerts() -> None:
    """Open and resolve alerts by the roll-ups."""
    services.detect_alerts()


@shared_task
def delete_old_samples() -> None:
    """Drop samples that live on in roll-ups."""
    services.delete_old_samples()
