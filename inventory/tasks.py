"""Work of the fleet that beat wakes up."""

from celery import shared_task

from inventory import services


@shared_task(acks_late=True)
def mark_stale() -> None:
    """Health of nodes that nobody observed for ten minutes becomes unknown."""
    services.mark_stale()


@shared_task
def forget_observations() -> None:
    """Observations that say nothing any more go."""
    services.forget_observations()


@shared_task(acks_late=True)
def run_connection_test(operation_id: str) -> None:
    """Ask a cluster for its version, its kinds and our rights."""
    services.run_connection_test(operation_id=operation_id)
