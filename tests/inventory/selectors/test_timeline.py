"""A node's history: decisions, the latest observation, what resolved itself."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inventory import selectors, services
from tests.factories import make_olga
from tests.inventory.factories import found_node, make_node

pytestmark = pytest.mark.django_db


def test_moments_come_newest_first_with_who_and_why() -> None:
    node, olga = make_node(), make_olga()
    services.cordon_node(node_id=node.pk, reason="fan", actor=olga)
    services.uncordon_node(node_id=node.pk, reason="fan repaired", actor=olga)

    first, second = selectors.timeline(node)

    assert (first.what, first.reason, first.who) == (
        "node.uncordoned", "fan repaired", olga.username,
    )  # fmt: skip
    assert (second.before, second.after) == ({"state": "ready"}, {"state": "cordoned"})


def test_observations_and_what_resolved_itself_are_told() -> None:
    node = make_node()
    seen = timezone.now() - timedelta(seconds=9)
    services.record_observation(
        cluster_id=node.cluster_id, found=found_node(node, accelerators=(), seen_at=seen)
    )
    services.record_observation(cluster_id=node.cluster_id, found=found_node(node))

    moments = selectors.timeline(node)

    kinds = [moment.kind for moment in moments]
    assert (kinds.count("observation"), kinds.count("finding")) == (1, 2)
    assert {moment.what for moment in moments if moment.kind == "audit"} == {"finding.open"}


def test_the_history_is_bounded_and_three_queries() -> None:
    node, olga = make_node(), make_olga()
    for _ in range(3):
        services.cordon_node(node_id=node.pk, reason="a", actor=olga)
        services.uncordon_node(node_id=node.pk, reason="b", actor=olga)

    with CaptureQueriesContext(connection) as queries:
        moments = selectors.timeline(node, most=4)

    assert (len(moments), len(queries)) == (4, 3)
