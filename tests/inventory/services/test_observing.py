"""Observations: intended beside observed, health from the newest look, unknown when it is old."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import OutboxEvent
from inventory import services
from inventory.discovery.agent import write_report
from inventory.discovery.base import FoundNode
from inventory.errors import ObservationFromFutureError, ReportRefusedError, UnknownVendorError
from inventory.models import Accelerator, Finding, Node, Observation
from inventory.vendors.base import FoundAccelerator
from tests.factories import make_ben, make_olga
from tests.inventory.factories import found_node, make_cluster, make_node

pytestmark = pytest.mark.django_db


def observe(node: Node, **changes: Any) -> Observation:
    found = found_node(node, **changes)
    observation = services.record_observation(cluster_id=node.cluster_id, found=found)
    node.refresh_from_db()
    return observation


def without_last(found: FoundNode) -> tuple[FoundAccelerator, ...]:
    return found.accelerators[:-1]


def kinds(node: Node) -> list[str]:
    return sorted(node.findings.filter(state="open").values_list("kind", flat=True))


def test_a_node_that_is_as_planned_is_healthy_and_has_no_finding() -> None:
    node = make_node()

    observation = observe(node)

    assert (node.health, node.health_reason, node.observed_at) == (
        "healthy", "", observation.seen_at,
    )  # fmt: skip
    assert set(node.accelerators.values_list("health", flat=True)) == {"healthy"}
    assert kinds(node) == []


def test_readings_are_kept_and_what_the_tool_did_not_say_stays_none() -> None:
    node = make_node(accelerators=1)
    device = FoundAccelerator(
        slot=0, serial=f"{node.hostname}-0", name="MI325X", memory_total_mib=262128,
        utilisation=0.5, power_watts=612.5,
    )  # fmt: skip

    observe(node, accelerators=(device,))

    row = node.accelerators.get()
    assert (row.observed_memory_total_mib, row.observed_utilisation) == (262128, 0.5)
    assert (row.observed_power_watts, row.observed_temperature_celsius) == (612.5, None)


@pytest.mark.parametrize(
    ("healths", "expected"),
    [
        (["healthy", "degraded"], ("degraded", "accelerator-failed")),
        (["failed", "failed"], ("failed", "accelerator-failed")),
        (["healthy", "failed"], ("degraded", "accelerator-failed")),
    ],
)
def test_health_of_the_node_follows_its_devices(
    healths: list[str], expected: tuple[str, str]
) -> None:
    node = make_node()
    found = found_node(node)
    devices = tuple(
        replace(device, health=health)
        for device, health in zip(found.accelerators, healths, strict=True)
    )

    observe(node, accelerators=devices)

    assert (node.health, node.health_reason) == expected


def test_a_missing_device_failed_and_is_a_finding_until_it_is_back() -> None:
    node = make_node()

    observe(node, accelerators=without_last(found_node(node)))

    missing = node.accelerators.get(slot=1)
    assert (missing.health, missing.health_reason) == ("failed", "missing")
    assert (node.health, node.health_reason) == ("degraded", "accelerator-missing")
    assert kinds(node) == ["missing"]

    observe(node, seen_at=timezone.now())

    assert (node.health, kinds(node)) == ("healthy", [])
    assert node.findings.get().state == "resolved"


def test_a_difference_seen_twice_is_one_finding_with_the_later_time() -> None:
    node = make_node()
    devices = without_last(found_node(node))

    observe(node, accelerators=devices, seen_at=timezone.now() - timedelta(seconds=5))
    later = observe(node, accelerators=devices, seen_at=timezone.now())

    finding = node.findings.get()
    assert (finding.observation, finding.seen_at) == (later, later.seen_at)


def test_the_same_observation_again_changes_nothing() -> None:
    node = make_node()
    found = found_node(node)

    first = services.record_observation(cluster_id=node.cluster_id, found=found)
    again = services.record_observation(cluster_id=node.cluster_id, found=found)

    assert again == first
    assert Observation.objects.count() == 1


def test_an_observation_that_arrives_late_is_kept_and_sets_nothing() -> None:
    node = make_node()
    newest = observe(node)

    late = observe(
        node,
        accelerators=without_last(found_node(node)),
        seen_at=newest.seen_at - timedelta(minutes=1),
    )

    assert (node.observed_at, node.health) == (newest.seen_at, "healthy")
    assert Observation.objects.filter(pk=late.pk).exists()
    assert kinds(node) == []


def test_a_clock_that_is_ahead_is_refused_beyond_thirty_seconds() -> None:
    node = make_node()

    observe(node, seen_at=timezone.now() + timedelta(seconds=20))
    with pytest.raises(ObservationFromFutureError, match=node.hostname):
        observe(node, seen_at=timezone.now() + timedelta(seconds=60))


def test_a_vendor_without_a_file_is_refused() -> None:
    with pytest.raises(UnknownVendorError, match="'acme'"):
        observe(make_node(), vendor="acme")


def test_a_node_nobody_planned_is_a_finding_of_the_cluster() -> None:
    node = make_node()
    found = replace(found_node(node), hostname="gpu-unknown")

    observation = services.record_observation(cluster_id=node.cluster_id, found=found)

    finding = Finding.objects.get()
    assert (finding.kind, finding.node, observation.node) == ("unknown-node", None, None)
    assert finding.observed == "2 x amd"
    assert finding.suggestion["model"] == "amd-mi325x"
    assert OutboxEvent.objects.filter(type="consort.node.discovered").count() == 1


def test_another_vendor_fails_every_device_of_the_plan() -> None:
    node = make_node()

    observe(node, vendor="nvidia")

    assert (node.health, kinds(node)) == ("failed", ["vendor-differs"])


def test_a_change_of_health_is_told_once() -> None:
    node = make_node()
    observe(node, seen_at=timezone.now() - timedelta(seconds=9))
    observe(node, accelerators=(), seen_at=timezone.now() - timedelta(seconds=6))
    observe(node, accelerators=(), seen_at=timezone.now() - timedelta(seconds=3))

    told = OutboxEvent.objects.order_by("created_at").values_list("type", flat=True)

    assert list(told) == ["consort.node.recovered", "consort.node.failed"]


def test_health_since_moves_only_with_health() -> None:
    node = make_node()
    first = observe(node, seen_at=timezone.now() - timedelta(seconds=9))
    observe(node, seen_at=timezone.now())

    assert node.health_since == first.seen_at


def test_an_old_observation_makes_health_unknown_never_healthy() -> None:
    node, fresh = make_node(), make_node()
    seen = observe(node)
    observe(fresh, seen_at=timezone.now() + timedelta(seconds=20))
    later = seen.seen_at + timedelta(seconds=601)

    marked = services.mark_stale(now=later)
    again = services.mark_stale(now=later)

    node.refresh_from_db()
    fresh.refresh_from_db()
    assert (marked, again) == (1, 0)
    assert (node.health, node.health_reason, node.health_since) == (
        "unknown", "stale", seen.seen_at,
    )  # fmt: skip
    assert set(node.accelerators.values_list("health", flat=True)) == {"unknown"}
    assert fresh.health == "healthy"


def test_a_report_of_the_agent_is_taken_in_by_whoever_may() -> None:
    node, olga = make_node(), make_olga()
    report = write_report(found_node(node))
    ask = {"cluster_id": node.cluster_id, "hostname": node.hostname, "report": report}

    with pytest.raises(NotPermittedError):
        services.record_report(actor=make_ben(), **ask)
    with pytest.raises(ReportRefusedError, match="hostname is missing"):
        services.record_report(actor=olga, **ask | {"report": report | {"hostname": ""}})
    assert services.record_report(actor=olga, **ask).node == node


def test_the_cluster_remembers_its_last_answer() -> None:
    cluster = make_cluster(error="no route")
    node = make_node(cluster=cluster)

    seen = observe(node)

    cluster.refresh_from_db()
    assert (cluster.answered_at, cluster.error) == (seen.seen_at, "")


@pytest.mark.django_db(transaction=True)
def test_of_six_equal_reports_one_is_kept(at_the_same_time: Callable[..., list[str]]) -> None:
    node = make_node()
    found = found_node(node, accelerators=())

    outcomes = at_the_same_time(
        6, services.record_observation, cluster_id=node.cluster_id, found=found
    )

    assert outcomes == ["Observation"] * 6
    assert (Observation.objects.count(), Finding.objects.count()) == (1, 2)
    assert Accelerator.objects.filter(health="failed").count() == 2
