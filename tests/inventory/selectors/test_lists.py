"""Lists of the fleet: what they show, to whom, and in how many queries."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.tenancy.models import User
from inventory import selectors, services
from inventory.models import ImportRun
from tests.factories import make_ana, make_ben, make_olga, make_user
from tests.inventory.factories import found_node, make_cluster, make_node

pytestmark = pytest.mark.django_db

LISTS = [
    selectors.nodes_for_viewer,
    selectors.accelerators_for_viewer,
    selectors.sites_for_viewer,
    selectors.clusters_for_viewer,
    selectors.models_for_viewer,
    selectors.node_types_for_viewer,
    selectors.findings_for_viewer,
    selectors.observations_for_viewer,
    selectors.imports_for_viewer,
]
List = Callable[[User], QuerySet[Any]]


def fill(count: int = 1) -> None:
    """Nodes with an observation and a finding each, and a file."""
    for _ in range(count):
        node = make_node()
        found = found_node(node, accelerators=found_node(node).accelerators[:1])
        services.record_observation(cluster_id=node.cluster_id, found=found)
        ImportRun.objects.create(sha256="0" * 64, state="refused", dry_run=False, rows=0)


@pytest.mark.parametrize("rows", LISTS)
def test_an_operator_and_a_reader_see_the_fleet(rows: List) -> None:
    fill()

    assert rows(make_olga()).exists()
    assert rows(make_user(None, "readonly")).exists()


@pytest.mark.parametrize("rows", LISTS)
@pytest.mark.parametrize("make_tenant_user", [make_ana, make_ben, make_user])
def test_ben_ana_and_a_person_without_a_role_see_nothing_of_the_fleet(
    rows: List, make_tenant_user: Callable[[], User]
) -> None:
    fill()

    assert not rows(make_tenant_user()).exists()


@pytest.mark.parametrize("rows", LISTS)
def test_a_list_is_one_query_however_long(rows: List) -> None:
    olga = make_olga()
    fill(3)

    with CaptureQueriesContext(connection) as queries:
        for row in rows(olga):
            str(row)

    assert len(queries) == 1


def test_a_node_comes_with_its_counts_and_names() -> None:
    node = make_node(accelerators=3, cluster=make_cluster(slug="seoul-1"))
    devices = found_node(node).accelerators[:2]
    services.record_observation(
        cluster_id=node.cluster_id, found=found_node(node, accelerators=devices)
    )

    row = selectors.nodes_for_viewer(make_olga()).get()

    assert (row.accelerator_count, row.healthy_accelerators, row.open_findings) == (3, 2, 1)
    assert (row.cluster_slug, row.model_slug) == ("seoul-1", "amd-mi325x")
    assert (row.effective_health, row.effective_reason) == ("degraded", "accelerator-missing")


def test_stale_health_is_unknown_before_any_task_marked_it() -> None:
    node = make_node()
    services.record_observation(cluster_id=node.cluster_id, found=found_node(node))
    later = timezone.now() + timedelta(minutes=11)

    row = selectors.nodes_for_viewer(make_olga(), now=later).get()
    device = selectors.accelerators_for_viewer(make_olga(), now=later)[0]

    assert (row.health, row.effective_health, row.effective_reason) == (
        "healthy", "unknown", "stale",
    )  # fmt: skip
    assert row.healthy_accelerators == 0
    assert device.effective_health == "unknown"


def test_what_was_never_observed_keeps_that_reason() -> None:
    make_node()

    row = selectors.nodes_for_viewer(make_olga()).get()

    assert (row.effective_health, row.effective_reason) == ("unknown", "never-observed")


def test_retired_devices_are_not_counted() -> None:
    node, olga = make_node(), make_olga()
    services.retire_accelerator(
        accelerator_id=node.accelerators.get(slot=0).pk, reason="gone", actor=olga
    )

    assert selectors.nodes_for_viewer(olga).get().accelerator_count == 1
    assert selectors.models_for_viewer(olga).get().accelerator_count == 1
