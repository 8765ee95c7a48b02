"""Tasks are thin: they call a service and may run twice."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from inventory import services, tasks
from inventory.models import Discovery, Finding, Observation
from tests.inventory.factories import found_node, make_cluster, make_node


@pytest.mark.django_db
def test_mark_stale_makes_old_observations_unknown() -> None:
    node = make_node()
    services.record_observation(cluster_id=node.cluster_id, found=found_node(node))

    with time_machine.travel(timezone.now() + timedelta(minutes=11)):
        tasks.mark_stale()
        tasks.mark_stale()

    node.refresh_from_db()
    assert (node.health, node.health_reason) == ("unknown", "stale")


@pytest.mark.django_db
def test_old_observations_go_but_the_newest_and_what_findings_rest_on_stay() -> None:
    node, now = make_node(), timezone.now()
    seen = [
        services.record_observation(
            cluster_id=node.cluster_id, found=found_node(node, seen_at=now - timedelta(days=days))
        )
        for days in (50, 45, 40, 35)
    ]
    Finding.objects.create(
        cluster=node.cluster, node=node, observation=seen[1], hostname=node.hostname,
        kind="missing", seen_at=seen[1].seen_at,
    )  # fmt: skip

    tasks.forget_observations()
    tasks.forget_observations()

    assert set(Observation.objects.all()) == {seen[1], seen[3]}


@pytest.mark.django_db
def test_a_cluster_without_a_connection_is_not_asked() -> None:
    cluster = make_cluster(kind="kubernetes")

    tasks.discover_cluster(str(cluster.pk))
    tasks.discover_clusters()

    assert not Discovery.objects.exists()
