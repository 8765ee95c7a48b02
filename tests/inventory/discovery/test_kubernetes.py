"""Nodes of a cluster: which source wins, what is unknown, what is remarkable."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.discovery.base import FoundNode
from inventory.discovery.kubernetes import hostname_of, read_nodes
from tests.inventory.discovery.cluster_objects import GPU, device, h100, node, resource_slice
from tests.inventory.discovery.test_slices import anything

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


def read(node: Any, *slices: Any, planned: str = "") -> FoundNode:
    wanted = {"gpu-1": planned} if planned else {}
    (found,) = read_nodes([node], slices, seen_at=NOW, planned=wanted)
    return found


def doubts(found: FoundNode) -> dict[str, str]:
    return {doubt.kind: doubt.observed for doubt in found.doubts}


def test_resource_slices_come_first_and_every_source_is_kept() -> None:
    found = read(h100(), resource_slice())

    assert (found.vendor, found.count, found.usable, len(found.accelerators)) == (
        "nvidia", 8, 8, 8,
    )  # fmt: skip
    assert {(fact.name, fact.value, fact.source) for fact in found.facts} >= {
        ("count", 8, "resource-slice"),
        ("count", 8, "extended-resource"),
        ("count", 8, "label"),
        ("model", "NVIDIA H100 80GB HBM3", "resource-slice"),
        ("model", "NVIDIA-H100-80GB-HBM3", "label"),
        ("memory_mib", 81559, "label"),
    }
    assert found.doubts == ()


def test_extended_resources_give_counts_only_and_labels_the_model() -> None:
    found = read(h100())

    assert (found.accelerators, found.count, found.usable) == ((), 8, 8)
    assert (found.model, found.memory_mib) == ("NVIDIA-H100-80GB-HBM3", 81559)


@pytest.mark.parametrize(
    ("node_object", "vendor", "count", "memory"),
    [
        pytest.param(
            node(capacity={"amd.com/gpu": "8"}, labels={"amd.com/gpu.vram": "192G"}),
            "amd", 8, 192 * 1024, id="amd",
        ),
        pytest.param(node(capacity={"habana.ai/gaudi": "8"}), "intel-gaudi", 8, None, id="gaudi"),
        pytest.param(
            node(labels={"furiosa.ai/npu.product": "rngd", "furiosa.ai/npu.count": "4"}),
            "furiosa", 4, None, id="labels-only",
        ),
    ],
)  # fmt: skip
def test_units_are_those_of_the_vendors_labels(
    node_object: Any, vendor: str, count: int, memory: int | None
) -> None:
    found = read(node_object)

    assert (found.vendor, found.count, found.memory_mib) == (vendor, count, memory)


def test_a_machine_of_which_nobody_says_anything_has_an_unknown_number_and_not_zero() -> None:
    found = read(node())

    assert (found.vendor, found.count, found.usable) == ("", None, None)


def test_a_capacity_of_zero_is_no_count_and_nothing_is_given_out() -> None:
    found = read(h100(capacity={GPU: "0"}, labels={"nvidia.com/gpu.count": ""}))

    assert (found.count, found.usable) == (None, 0)


def test_what_the_plugin_holds_back_is_not_usable() -> None:
    found = read(h100(allocatable={GPU: "7"}))

    assert (found.count, found.usable) == (8, 7)


def test_slices_of_devices_leave_the_number_of_devices_to_the_labels() -> None:
    found = read(h100(capacity={GPU: "6", "nvidia.com/mig-1g.10gb": "14"}))

    assert (found.count, found.usable) == (8, None)
    assert doubts(found) == {"partitioned": "nvidia.com/mig-1g.10gb"}


def test_labels_that_describe_slices_do_not_count_devices() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}
    found = read(h100(count=56, labels=labels))

    assert (found.count, found.usable, found.model) == (None, None, "NVIDIA-H100-80GB-HBM3")
    assert doubts(found) == {"partitioned": "1g.10gb"}


def test_shares_are_counted_back_to_devices() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED", "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.count": "8",
    }  # fmt: skip
    found = read(h100(capacity={GPU: "32"}, allocatable={GPU: "28"}, labels=labels))

    assert (found.count, found.usable, doubts(found)) == (8, 7, {"shared": "x4"})


@pytest.mark.parametrize(
    ("node_object", "slices", "said"),
    [
        pytest.param(
            h100(count=4), [resource_slice()],
            "count: resource-slice 8, extended-resource 4, label 4", id="count",
        ),
        pytest.param(
            h100(labels={"nvidia.com/gpu.product": "NVIDIA-H100-NVL"}), [resource_slice()],
            "model: resource-slice NVIDIA H100 80GB HBM3, label NVIDIA-H100-NVL", id="model",
        ),
        pytest.param(
            h100(labels={"nvidia.com/gpu.memory": "40960"}), [resource_slice()],
            "memory_mib: resource-slice 81559, label 40960", id="memory",
        ),
    ],
)  # fmt: skip
def test_sources_that_disagree_are_remarkable_and_the_first_still_wins(
    node_object: Any, slices: list[Any], said: str
) -> None:
    found = read(node_object, *slices)

    assert doubts(found) == {"sources-disagree": said}
    assert (found.count, found.model, found.memory_mib) == (8, "NVIDIA H100 80GB HBM3", 81559)


def test_of_two_vendors_the_planned_one_is_looked_at_and_the_other_is_foreign() -> None:
    both = h100(capacity={GPU: "2", "amd.com/gpu": "8"}, labels={"nvidia.com/gpu.count": "2"})

    planned, unplanned = read(both, planned="nvidia"), read(both)

    assert (planned.vendor, planned.count) == ("nvidia", 2)
    assert doubts(planned) == {"foreign-driver": "8 x amd"}
    assert (unplanned.vendor, doubts(unplanned)) == ("amd", {"foreign-driver": "2 x nvidia"})


def test_a_driver_and_a_resource_that_no_vendor_file_knows_are_kept_as_facts() -> None:
    found = read(
        node(capacity={"acme.example/tpu": "4"}), resource_slice(driver="net.example", devices=[])
    )

    assert found.vendor == ""
    assert {(fact.name, fact.place) for fact in found.facts} >= {
        ("other", "acme.example/tpu"), ("other", "net.example gpu-1"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ready", "state"), [("True", "ready"), ("False", "not-ready"), ("Unknown", "lost")]
)
def test_the_state_of_the_node_is_what_the_cluster_says(ready: str, state: str) -> None:
    found = read(h100(ready=ready))

    assert found.state == state
    expected = {} if state == "ready" else {"node-not-ready": f"{state}: kubelet says"}
    assert doubts(found) == expected


def test_a_node_without_conditions_is_in_no_known_state() -> None:
    bare = h100()
    del bare["status"]["conditions"]

    assert read(bare).state == "unknown"


def test_cordons_and_foreign_taints_are_remarkable_and_the_vendors_own_are_not() -> None:
    taints = [
        {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "team", "value": "b", "effect": "NoSchedule"},
        {"key": "soft", "effect": "PreferNoSchedule"},
    ]
    found = read(h100(cordon=True, taints=taints))

    assert doubts(found) == {
        "cordoned-in-cluster": "spec.unschedulable", "tainted": "team=b:NoSchedule",
    }  # fmt: skip


def test_what_cannot_be_read_is_said_and_counts_as_unknown() -> None:
    found = read(h100(capacity={GPU: "eight"}, labels={"nvidia.com/gpu.count": "x"}))

    assert found.count is None
    assert doubts(found) == {"unreadable": "nvidia.com/gpu: eight"}


@pytest.mark.parametrize("lie", ["9" * 60, "9" * 5000, "-1", "1e9"])
def test_labels_that_lie_about_numbers_count_as_unknown(lie: str) -> None:
    labels = {f"nvidia.com/gpu.{what}": lie for what in ("count", "memory", "replicas")}
    found = read(h100(labels=labels))

    assert (found.count, found.usable, found.memory_mib) == (8, 8, None)


def test_a_label_that_every_machine_of_a_cloud_has_makes_no_accelerator() -> None:
    found = read(node(labels={"node.kubernetes.io/instance-type": "m5.large", "Model": "x"}))

    assert found.vendor == ""


def test_an_incomplete_pool_leaves_the_count_to_the_next_source() -> None:
    found = read(h100(), resource_slice(count=4, slices=2))

    assert (found.count, found.accelerators) == (8, ())
    assert doubts(found) == {"unreadable": "gpu.nvidia.com gpu-1: incomplete"}


def test_a_device_that_the_driver_holds_back_is_not_usable() -> None:
    held = device(0) | {"taints": [{"effect": "NoSchedule"}]}
    found = read(node(), resource_slice(devices=[held, device(1)]))

    assert (found.count, found.usable) == (2, 1)


def test_the_hostname_is_the_label_and_a_second_node_of_that_name_keeps_its_own() -> None:
    first, second = h100("a"), h100("b")
    second["metadata"]["labels"]["kubernetes.io/hostname"] = "A"

    found = read_nodes([second, first, {}, "x", None], [], seen_at=NOW)

    assert [each.hostname for each in found] == ["a", "b"]
    assert hostname_of(second) == "A"


@given(anything, anything, anything, anything, st.sampled_from(["", "nvidia"]))
def test_whatever_a_node_object_holds_is_read_without_an_error(
    labels: Any, capacity: Any, taints: Any, conditions: Any, planned: str
) -> None:
    odd = {
        "metadata": {"name": "gpu-1", "labels": labels},
        "spec": {"taints": taints},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": conditions},
    }

    found = read_nodes([odd], [], seen_at=NOW, planned={"gpu-1": planned})

    assert len(found) == 1
    assert found[0].count is None or found[0].count > 0
