"""Which test of a connection runs, and which was the last."""

import pytest
from django.utils import timezone

from controlplane.operations.models import Operation
from inventory import selectors
from inventory.models import Cluster
from tests.inventory.factories import make_cluster

pytestmark = pytest.mark.django_db


def make_test(cluster: Cluster, state: str) -> Operation:
    ended = timezone.now() if state in {"failed", "succeeded"} else None
    return Operation.objects.create(
        kind=selectors.CONNECTION_TEST, task="x", subject_id=str(cluster.pk), state=state,
        finished_at=ended,
    )  # fmt: skip


def test_the_last_test_counts_and_only_one_that_has_not_ended_runs() -> None:
    cluster, other = make_cluster(kind="kubernetes"), make_cluster(kind="kubernetes")
    make_test(other, "running")
    make_test(cluster, "failed")
    last = make_test(cluster, "succeeded")

    assert selectors.newest_test(cluster) == last
    assert selectors.running_test(cluster) is None
    running = make_test(cluster, "pending")
    assert selectors.running_test(cluster) == running
    assert selectors.newest_test(cluster) == running


def test_a_cluster_that_was_never_tested_has_no_test() -> None:
    assert selectors.newest_test(make_cluster(kind="kubernetes")) is None
