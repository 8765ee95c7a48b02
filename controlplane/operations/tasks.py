"""Periodic work on operations."""

from celery import shared_task

from controlplane.operations import services, ticks


@shared_task
def sweep() -> None:
    """Send again what the broker lost."""
    services.sweep()


@shared_task
def tick() -> None:
    """Show that beat and a worker are alive."""
    ticks.note("beat")


@shared_task
def forget_idempotency_keys() -> None:
    """Delete answers that nobody may ask for any more."""
    services.forget_idempotency_keys()


@shared_task
def forget_events() -> None:
    """Delete events that nobody needs to hear any more."""
    services.forget_events()
