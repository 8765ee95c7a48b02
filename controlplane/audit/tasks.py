"""Periodic work on the audit chain."""

from celery import shared_task

from controlplane.audit import chain


@shared_task
def extend_chain() -> None:
    """Give committed entries their places in the chain."""
    chain.extend()
