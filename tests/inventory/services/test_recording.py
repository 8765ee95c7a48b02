"""Looks of a cluster at many nodes: findings, health by two views, a fixed number of queries."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.operations.models import OutboxEvent
from inventory import services
from inventory.discovery.base import FoundNode
from inventory.discovery.kubernetes import read_nodes
from inventory.models import Accelerator, Cluster, Finding, Node, Observation
from inventory.services import recording
from inventory.vendors.base import FoundAccelerator
from tests.factories import make_olga
from tests.inventory.discovery.cluster_objects import GPU, device, h100, node, resource_slice
from tests.inventory.factories import found_node, make_cluster, make_model, make_node

pytestmark = pytest.mark.django_db


def make_h100(hostname: str = "gpu-1", accelerators: int = 8, **parts: Any) -> Node:
    model = make_model(slug="nvidia-h100-sxm", vendor="nvidia", name="H100 SXM 80GB")
    cluster = parts.pop("cluster", None) or make_cluster(kind=Cluster.Kind.KUBERNETES)
    return make_node(accelerators, hostname=hostname, cluster=cluster, model=model, **parts)


def look(*nodes: Any, slices: Any = (), at: datetime | None = None) -> list[FoundNode]:
    return read_nodes(nodes, slices, seen_at=at or timezone.now())


def record(cluster: Cluster, *nodes: Any, **parts: Any) -> recording.Counts:
    return recording.record_looks(cluster_id=cluster.pk, found=look(*nodes, **parts))


def kinds(row: Node) -> dict[str, str]:
    return dict(row.findings.filter(state="open").values_list("kind", "observed"))


def healths(row: Node) -> set[tuple[str, str]]:
    return set(row.accelerators.values_list("health", "health_reason"))


def test_a_node_as_planned_is_healthy_with_all_its_devices_and_no_finding() -> None:
    row = make_h100()

    counts = record(row.cluster, h100())

    row.refresh_from_db()
    assert (row.health, row.health_reason, kinds(row)) == ("healthy", "", {})
    assert (row.cluster_health, row.cluster_seen_at) == ("healthy", row.observed_at)
    assert healths(row) == {("healthy", "")}
    assert (counts.planned, counts.observations, counts.opened) == (1, 1, 0)


def test_the_hostname_is_found_whatever_its_capitals() -> None:
    row = make_h100("GPU-1")

    record(row.cluster, h100("gpu-1"))

    row.refresh_from_db()
    assert (row.health, Finding.objects.count()) == ("healthy", 0)


@pytest.mark.parametrize(
    ("node_object", "health", "kind", "observed"),
    [
        pytest.param(
            h100(allocatable={GPU: "7"}), ("degraded", "not-usable"), "not-usable", "7", id="plugin"
        ),
        pytest.param(
            h100(allocatable={GPU: "0"}), ("failed", "not-usable"), "not-usable", "0", id="all"
        ),
        pytest.param(
            h100(count=7), ("degraded", "accelerator-missing"), "fewer-devices", "7", id="fewer"
        ),
        pytest.param(
            h100(ready="False"), ("failed", "node-not-ready"), "node-not-ready",
            "not-ready: kubelet says", id="not-ready",
        ),
        pytest.param(
            h100(ready="Unknown"), ("unknown", "node-lost"), "node-not-ready",
            "lost: kubelet says", id="lost",
        ),
        pytest.param(node(), ("unknown", "not-reported"), "nothing-found", "", id="nothing"),
        pytest.param(
            node(capacity={"amd.com/gpu": "8"}), ("failed", "accelerator-missing"),
            "vendor-differs", "amd", id="other-vendor",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_health_with_its_reason_and_a_finding(
    node_object: Any, health: tuple[str, str], kind: str, observed: str
) -> None:
    row = make_h100()

    record(row.cluster, node_object)

    row.refresh_from_db()
    assert (row.health, row.health_reason) == health
    assert kinds(row)[kind] == observed


def test_a_look_that_only_counts_says_nothing_of_a_single_device() -> None:
    row = make_h100()

    record(row.cluster, h100(allocatable={GPU: "7"}))

    assert healths(row) == {("unknown", "counted")}


def test_serials_of_slices_merge_with_the_agents_and_a_count_makes_no_serial_differ() -> None:
    row = make_h100(accelerators=2)
    for slot in range(2):
        row.accelerators.filter(slot=slot).update(serial=f"GPU-{slot}")
    agent = tuple(FoundAccelerator(slot, f"GPU-{slot}", "NVIDIA H100 80GB HBM3") for slot in (0, 1))
    report = found_node(row, accelerators=agent)
    services.record_observation(cluster_id=row.cluster_id, found=report)

    record(row.cluster, h100(count=2))
    record(row.cluster, h100(count=2), slices=[resource_slice(devices=[device(1), device(0)])])

    assert kinds(row) == {}
    assert Observation.objects.count() == 3


def test_a_fresh_agent_speaks_for_the_devices_and_the_cluster_for_the_node() -> None:
    row = make_h100(accelerators=2)
    services.record_observation(cluster_id=row.cluster_id, found=found_node(row))

    record(row.cluster, h100(count=2, ready="False"))

    row.refresh_from_db()
    assert (row.health, row.health_reason) == ("failed", "node-not-ready")
    assert healths(row) == {("healthy", "")}


def test_the_clusters_view_outlasts_the_agents_next_report_and_ends_with_the_next_look() -> None:
    row = make_h100(accelerators=2)
    record(row.cluster, h100(count=2, ready="False"))

    report = found_node(row, seen_at=timezone.now())
    services.record_observation(cluster_id=row.cluster_id, found=report)
    row.refresh_from_db()
    assert (row.health, row.health_reason) == ("failed", "node-not-ready")

    record(row.cluster, h100(count=2))
    row.refresh_from_db()
    assert (row.health, kinds(row)) == ("healthy", {})


def test_a_cluster_that_says_nothing_does_not_overrule_an_agent() -> None:
    row = make_h100(accelerators=2)
    services.record_observation(cluster_id=row.cluster_id, found=found_node(row))

    record(row.cluster, node())

    row.refresh_from_db()
    assert (row.health, kinds(row)) == ("healthy", {"nothing-found": ""})


def test_each_source_answers_for_its_own_findings() -> None:
    row = make_h100(accelerators=2)
    missing = found_node(row, accelerators=found_node(row).accelerators[:1])
    services.record_observation(cluster_id=row.cluster_id, found=missing)
    record(row.cluster, h100(count=2, allocatable={GPU: "1"}))
    assert set(kinds(row)) == {"missing", "not-usable"}

    services.record_observation(
        cluster_id=row.cluster_id, found=found_node(row, seen_at=timezone.now())
    )
    assert set(kinds(row)) == {"not-usable"}


def test_a_look_that_says_the_same_makes_no_observation_and_moves_the_times() -> None:
    row = make_h100()
    first = timezone.now() - timedelta(minutes=5)
    record(row.cluster, h100(), at=first)

    counts = record(row.cluster, h100(), at=first + timedelta(minutes=4))

    row.refresh_from_db()
    assert (counts.observations, Observation.objects.count()) == (0, 1)
    assert row.observed_at == first + timedelta(minutes=4)
    assert set(row.accelerators.values_list("observed_at", flat=True)) == {row.observed_at}
    assert row.health_since == first


def test_a_look_that_arrives_late_changes_nothing() -> None:
    row = make_h100()
    record(row.cluster, h100())

    record(row.cluster, h100(ready="False"), at=timezone.now() - timedelta(minutes=1))

    row.refresh_from_db()
    assert (row.health, Observation.objects.count()) == ("healthy", 1)


def test_a_node_that_is_gone_is_unknown_with_a_finding_until_it_is_back() -> None:
    row = make_h100()
    planned = make_h100("gpu-2", cluster=row.cluster, state=Node.State.PLANNED)
    record(row.cluster, h100())

    missing = recording.gone_nodes(
        cluster_id=row.cluster_id, present=["gpu-9"], seen_at=timezone.now()
    )
    recording.record_looks(cluster_id=row.cluster_id, found=missing)

    row.refresh_from_db()
    assert [each.hostname for each in missing] == ["gpu-1"]
    assert (row.health, row.health_reason, set(kinds(row))) == (
        "unknown", "node-gone", {"node-gone"},
    )  # fmt: skip
    assert not planned.findings.exists()

    record(row.cluster, h100())
    row.refresh_from_db()
    assert (row.health, kinds(row)) == ("healthy", {})


def test_a_node_nobody_planned_is_a_finding_with_its_facts_and_one_without_devices_is_not() -> None:
    cluster = make_cluster(kind=Cluster.Kind.KUBERNETES)
    make_model(slug="nvidia-h100-sxm", vendor="nvidia", name="H100 SXM 80GB")

    counts = record(cluster, h100("gpu-7"), node("control-plane"))

    finding = Finding.objects.get()
    assert (finding.kind, finding.observed, counts.unknown) == ("unknown-node", "8 x nvidia", 1)
    assert finding.suggestion == {
        "do": "create-node", "hostname": "gpu-7", "vendor": "nvidia", "model": "nvidia-h100-sxm",
        "accelerators": 8, "serials": [],
    }  # fmt: skip
    assert Observation.objects.count() == 1

    services.accept_finding(finding_id=finding.pk, reason="ours", actor=make_olga())
    added = Node.objects.get(hostname="gpu-7")
    assert (added.vendor, added.accelerators.count()) == ("nvidia", 8)


def test_an_unknown_node_that_the_cluster_lists_no_more_is_resolved() -> None:
    cluster = make_cluster(kind=Cluster.Kind.KUBERNETES)
    record(cluster, h100("gpu-7"), h100("gpu-8"))

    recording.forget_unknown(cluster_id=cluster.pk, present=["gpu-8"], seen_at=timezone.now())

    assert list(Finding.objects.filter(state="open").values_list("hostname", flat=True)) == [
        "gpu-8"
    ]


def test_a_watch_that_heard_nothing_confirms_what_was_seen() -> None:
    row, silent = make_h100(), make_h100("gpu-2")
    record(row.cluster, h100(), at=timezone.now() - timedelta(minutes=2))
    now = timezone.now()

    confirmed = recording.confirm(cluster_id=row.cluster_id, seen_at=now)

    row.refresh_from_db()
    silent.refresh_from_db()
    assert (confirmed, row.cluster_seen_at, row.observed_at) == (1, now, now)
    assert set(row.accelerators.values_list("observed_at", flat=True)) == {now}
    assert silent.observed_at is None


def test_a_hundred_findings_share_one_audit_entry_and_each_node_has_its_event() -> None:
    cluster = make_cluster(kind=Cluster.Kind.KUBERNETES)

    record(cluster, *(h100(f"gpu-{number}") for number in range(60)))

    entry = AuditEntry.objects.get(action="finding.open")
    assert (entry.object_id, entry.after) == (str(cluster.pk), {"unknown-node": 60})
    assert OutboxEvent.objects.filter(type="consort.node.discovered").count() == 60


@pytest.mark.parametrize("planned", [True, False])
def test_the_number_of_queries_does_not_grow_with_the_nodes_of_a_chunk(*, planned: bool) -> None:
    def queries(count: int) -> int:
        cluster = make_cluster(kind=Cluster.Kind.KUBERNETES)
        names = [f"{cluster.slug}-{number}" for number in range(count)]
        objects = [h100(name, allocatable={GPU: "7"}) for name in names]
        for name in names if planned else ():
            make_h100(name, cluster=cluster)
        with CaptureQueriesContext(connection) as asked:
            record(cluster, *objects)
        return len(asked)

    assert queries(30) == queries(60)
    assert Accelerator.objects.filter(health="unknown").count() == (720 if planned else 0)
