"""Work of the fleet that beat wakes up."""

from uuid import UUID

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


@shared_task
def discover_clusters() -> None:
    """A task for each cluster, so that a silent one holds up no other."""
    services.discover_clusters()


@shared_task
def discover_cluster(cluster_id: str) -> None:
    """List a cluster's nodes, or follow what changed since."""
    services.discover_cluster(cluster_id=UUID(cluster_id))


@shared_task(acks_late=True)
def accept_findings(operation_id: str) -> None:
    """Take over the findings of an operation."""
    services.run_accepting(operation_id=operation_id)
