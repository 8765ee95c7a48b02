"""Periodic fetching and summing; each task may run twice, late or not at all."""

from celery import shared_task

from controlplane.metering import services


@shared_task
def pull_usage() -> None:
    """Fetch from the routers, then sum the hours that got events."""
    services.pull_routers()
    services.recompute_stale_hours()


@shared_task
def reconcile_recent() -> None:
    """Compare routers and engines for the last hours."""
    services.reconcile_recent()


@shared_task
def delete_old_events() -> None:
    """Drop raw events that live on in hours."""
    services.delete_old_events()
