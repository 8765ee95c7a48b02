"""Tasks are thin: they call a service and may run twice."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from inventory import services, tasks
from tests.inventory.factories import found_node, make_node


@pytest.mark.django_db
def test_mark_stale_makes_old_observations_unknown() -> None:
    node = make_node()
    services.record_observation(cluster_id=node.cluster_id, found=found_node(node))

    with time_machine.travel(timezone.now() + timedelta(minutes=11)):
        tasks.mark_stale()
        tasks.mark_stale()

    node.refresh_from_db()
    assert (node.health, node.health_reason) == ("unknown", "stale")
