"""Tests of clusters' connections, as operations."""

from controlplane.operations.models import Operation
from inventory.models import Cluster

CONNECTION_TEST = "inventory.test-connection"
"""Kind of the operation."""


def running_test(cluster: Cluster) -> Operation | None:
    """The test of the cluster that has not ended yet."""
    open_states = (Operation.State.PENDING, Operation.State.RUNNING)
    return Operation.objects.filter(
        kind=CONNECTION_TEST, subject_id=str(cluster.pk), state__in=open_states
    ).first()


def newest_test(cluster: Cluster) -> Operation | None:
    """The last test of the cluster, ended or not; its steps come with it."""
    tests = Operation.objects.filter(kind=CONNECTION_TEST, subject_id=str(cluster.pk))
    return tests.prefetch_related("steps").order_by("-created_at", "-pk").first()
