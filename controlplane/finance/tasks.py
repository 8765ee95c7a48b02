"""Periodic computing of the ledger; may run twice, late or not at all."""

from celery import shared_task

from controlplane.finance import services


@shared_task
def recompute_recent() -> None:
    """Compute the running hour and the one before it."""
    services.recompute_recent()
