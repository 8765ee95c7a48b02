"""Deliveries of serving's loops; each may run twice, late or not at all."""

from uuid import UUID

from celery import shared_task
from django.db import OperationalError

from controlplane.serving import services


@shared_task(acks_late=True, autoretry_for=(OperationalError,), retry_backoff=True, max_retries=3)
def reconcile_pool(pool_id: str) -> None:
    """Nudge the loop of one pool."""
    services.reconcile_pool(pool_id=UUID(pool_id))


@shared_task
def reconcile_pools() -> None:
    """Run the loop of every pool, so that a lost nudge costs seconds only."""
    services.reconcile_pools()


@shared_task(acks_late=True)
def follow_plan(operation_id: str) -> None:
    """Go on with the plan of an operation."""
    services.follow_operation(operation_id=UUID(operation_id))


@shared_task(acks_late=True)
def reset_knowledge(operation_id: str) -> None:
    """Empty caches and knowledge of a pool."""
    services.run_knowledge_reset(operation_id=UUID(operation_id))


@shared_task
def poll_routers() -> None:
    """Hear every router."""
    services.poll_routers()
