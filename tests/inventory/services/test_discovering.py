"""Discovery of whole clusters: listed, followed, and what a failing API server leaves behind."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from inventory import services
from inventory.models import Cluster, Discovery, Finding, Node
from inventory.services import clusters
from tests.inventory.discovery.cluster_objects import device, resource_slice
from tests.inventory.factories import make_cluster
from tests.inventory.services.test_recording import make_h100

pytestmark = pytest.mark.django_db
FOLLOW = 1.0


@pytest.fixture
def lab(cluster: Any, tmp_path: Path) -> Iterator[Cluster]:
    """The row of the cluster, whose credentials stand in this installation's folder."""
    cluster.write_credentials(tmp_path / "lab")
    with override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)):
        row = make_cluster(kind="kubernetes", connection_reference="lab")
        yield row
        clusters.forget_client(row.pk)


def discover(row: Cluster) -> Discovery:
    services.discover_cluster(cluster_id=row.pk, seconds=FOLLOW)
    return Discovery.objects.get(cluster=row)


def relist(row: Cluster) -> Discovery:
    Discovery.objects.update(listed_at=timezone.now() - timedelta(minutes=11))
    return discover(row)


def add_slice(cluster: Any, name: str, **parts: Any) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    cluster.create(body | resource_slice(name, **parts))


def lists(cluster: Any, path: str = "/api/v1/nodes") -> int:
    """How often the nodes were listed; a watch has the same path and is told by its query."""
    return sum(
        asked.startswith(path) and "watch=" not in asked and "limit=" in asked
        for method, asked in cluster.requests
        if method == "GET"
    )


def cut_the_first_watch(cluster: Any) -> None:
    pause = Event()
    while not any("watch=" in asked for _method, asked in cluster.requests):
        pause.wait(0.01)
    cluster.cut_watches()


def open_kinds(**about: Any) -> list[tuple[str, str]]:
    rows = Finding.objects.filter(state="open", **about).order_by("hostname", "kind")
    return list(rows.values_list("hostname", "kind"))


def test_a_list_finds_planned_and_unknown_nodes_and_writes_nothing(
    cluster: Any, lab: Cluster
) -> None:
    planned = make_h100("gpu-1", cluster=lab)
    cluster.add_node("gpu-1")
    cluster.add_node("gpu-2", "amd")
    cluster.add_node("infra-1", "nvidia", resources={}, labels={
        "nvidia.com/gpu.product": "", "nvidia.com/gpu.count": "", "nvidia.com/gpu.memory": "",
    })  # fmt: skip

    row = discover(lab)

    planned.refresh_from_db()
    assert (planned.health, planned.cluster_health) == ("healthy", "healthy")
    assert open_kinds() == [("gpu-2", "unknown-node")]
    assert (row.nodes, row.accelerators, row.unknown_nodes) == (3, 16, 1)
    assert row.listed_at is not None
    assert (row.error, cluster.writes) == ("", [])


def test_slices_are_read_where_the_cluster_has_them(cluster: Any, lab: Cluster) -> None:
    row = make_h100("gpu-1", cluster=lab)
    for slot in range(8):
        row.accelerators.filter(slot=slot).update(serial=f"GPU-{slot}")
    cluster.add_node("gpu-1")
    add_slice(cluster, "gpu-1")

    found = discover(lab)

    assert (found.without_slices, open_kinds()) == ("", [])
    assert row.accelerators.filter(observed_memory_total_mib=81559).count() == 8


def test_without_the_right_to_read_slices_resources_still_count(cluster: Any, lab: Cluster) -> None:
    make_h100("gpu-1", cluster=lab)
    cluster.add_node("gpu-1")
    cluster.rights.deny("list", "resourceslices", "resource.k8s.io")

    row = discover(lab)

    assert "forbidden" in row.without_slices.lower()
    assert (row.accelerators, open_kinds()) == (8, [])


def test_a_watch_hears_of_a_lost_node_without_listing_again(cluster: Any, lab: Cluster) -> None:
    row = make_h100("gpu-1", cluster=lab)
    make_h100("gpu-2", cluster=lab)
    cluster.add_node("gpu-1")
    cluster.add_node("gpu-2")
    discover(lab)
    cluster.lose_node("gpu-1")

    discover(lab)

    row.refresh_from_db()
    assert (row.health, row.health_reason) == ("unknown", "node-lost")
    assert open_kinds() == [("gpu-1", "node-not-ready")]
    assert lists(cluster) == 1


def test_a_watch_hears_of_nodes_that_come_and_go_and_of_slices(cluster: Any, lab: Cluster) -> None:
    row = make_h100("gpu-1", cluster=lab)
    cluster.add_node("gpu-1")
    discover(lab)
    cluster.add_node("gpu-9", "amd")
    add_slice(cluster, "gpu-1", devices=[device(number) for number in range(7)])

    discover(lab)
    assert ("gpu-9", "unknown-node") in open_kinds()
    assert ("gpu-1", "sources-disagree") in open_kinds()

    cluster.delete("v1", "Node", "gpu-1")
    discover(lab)
    row.refresh_from_db()
    assert row.health_reason == "node-gone"
    assert lists(cluster) == 1


def test_silence_confirms_what_was_seen(cluster: Any, lab: Cluster) -> None:
    row = make_h100("gpu-1", cluster=lab)
    cluster.add_node("gpu-1")
    discover(lab)
    Node.objects.update(observed_at=timezone.now() - timedelta(minutes=5))

    found = discover(lab)

    row.refresh_from_db()
    assert row.observed_at == found.followed_at
    assert row.health == "healthy"


def test_a_place_that_is_gone_is_listed_again(cluster: Any, lab: Cluster) -> None:
    cluster.add_node("gpu-1")
    discover(lab)
    cluster.expire()

    row = discover(lab)

    assert (lists(cluster), row.error) == (2, "")


def test_a_watch_that_is_cut_proves_nothing(cluster: Any, lab: Cluster) -> None:
    row = make_h100("gpu-1", cluster=lab)
    cluster.add_node("gpu-1")
    first = discover(lab).followed_at
    cutting = Thread(target=cut_the_first_watch, args=(cluster,))
    cutting.start()

    services.discover_cluster(cluster_id=lab.pk, seconds=3)

    cutting.join()
    assert Discovery.objects.get(cluster=lab).followed_at == first
    row.refresh_from_db()
    assert row.observed_at == first


def test_a_full_list_comes_again_after_ten_minutes(cluster: Any, lab: Cluster) -> None:
    cluster.add_node("gpu-1")
    discover(lab)
    relist(lab)

    assert lists(cluster) == 2


def test_a_node_missing_from_the_list_is_gone_and_an_empty_list_says_nothing(
    cluster: Any, lab: Cluster
) -> None:
    make_h100("gpu-1", cluster=lab)
    cluster.add_node("gpu-2")
    discover(lab)
    assert open_kinds() == [("gpu-1", "node-gone"), ("gpu-2", "unknown-node")]

    cluster.delete("v1", "Node", "gpu-2")
    row = relist(lab)

    assert "lists no node" in row.error
    assert open_kinds() == [("gpu-1", "node-gone"), ("gpu-2", "unknown-node")]


def test_a_cluster_that_does_not_answer_leaves_what_was_seen_and_its_error(
    cluster: Any, lab: Cluster
) -> None:
    row = make_h100("gpu-1", cluster=lab)
    cluster.add_node("gpu-1")
    seen = discover(lab).listed_at
    cluster.faults.answer(503, "down", times=10)

    assert not services.discover_cluster(cluster_id=lab.pk, seconds=FOLLOW)

    found = Discovery.objects.get(cluster=lab)
    row.refresh_from_db()
    assert ("down" in found.error, found.listed_at) == (True, seen)
    assert found.failed_at is not None
    assert (row.health, row.observed_at) == ("healthy", seen)


def test_two_runs_at_once_look_once(cluster: Any, lab: Cluster) -> None:
    from controlplane.operations import leases

    cluster.add_node("gpu-1")
    leases.acquire(f"inventory.discovery:{lab.pk}", holder="other", seconds=60)

    assert not services.discover_cluster(cluster_id=lab.pk, seconds=FOLLOW)
    assert cluster.requests == []


@pytest.mark.django_db(transaction=True)
def test_each_connected_cluster_has_a_task_of_its_own(sent_tasks: list[Any]) -> None:
    first = make_cluster(kind="kubernetes", connection_reference="a")
    second = make_cluster(kind="kubernetes", connection_reference="b")
    make_cluster(kind="kubernetes")
    make_cluster(kind="static")

    services.discover_clusters()

    assert sorted(sent_tasks) == sorted(
        ("inventory.tasks.discover_cluster", (str(row.pk),)) for row in (first, second)
    )


def test_a_cluster_that_swallows_requests_holds_up_nobody_elses(
    cluster: Any, other_cluster: Any, lab: Cluster, tmp_path: Path
) -> None:
    other_cluster.write_credentials(tmp_path / "other")
    other = make_cluster(kind="kubernetes", connection_reference="other")
    other_cluster.add_node("gpu-1")
    cluster.faults.black_hole()

    with override_settings(CLUSTER_TIMEOUT_SECONDS=1):
        began = time.monotonic()
        assert not services.discover_cluster(cluster_id=lab.pk, seconds=FOLLOW)
        assert not services.discover_cluster(cluster_id=lab.pk, seconds=FOLLOW)
        took = time.monotonic() - began
        assert services.discover_cluster(cluster_id=other.pk, seconds=FOLLOW)

    # The second run is not even begun: nobody asks before the time that was noted.
    assert took < 5
    assert Discovery.objects.get(cluster=other).nodes == 1
    cluster.faults.clear()
    clusters.forget_client(other.pk)
