"""Engines that run in a cluster already: what each kind of object says, and what is left out."""

from typing import Any

import pytest
from hypothesis import given

from inventory.discovery.adoptable import (
    MOST_OBJECTS,
    read_pool,
    read_service,
    read_slices,
    selector_of,
    shown,
)
from tests.inventory.discovery.test_slices import anything


def pool(**spec: Any) -> dict[str, Any]:
    values = {
        "selector": {"matchLabels": {"app": "qwen"}},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": {"name": "qwen-epp", "port": {"number": 9002}},
    }
    return {
        "apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
        "metadata": {"name": "qwen", "namespace": "ml"}, "spec": values | spec,
    }  # fmt: skip


def pod(name: str = "qwen-0", **parts: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": parts.get("labels", {})},
        "spec": {"nodeName": "gpu-1"},
        "status": {
            "podIP": parts.get("address", "10.0.0.7"),
            "conditions": [{"type": "Ready", "status": parts.get("ready", "True")}],
        },
    }


def endpoint_slice(**parts: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": "qwen", "llm-d.ai/model": "qwen3"}
    return {
        "metadata": {"name": "qwen-x", "namespace": "ml", "labels": parts.get("labels", labels)},
        "ports": [{"port": 8000}],
        "endpoints": parts.get(
            "endpoints",
            [{"addresses": ["10.0.0.7"], "nodeName": "gpu-1", "conditions": {"ready": True}}],
        ),
    }


def test_a_pool_gives_the_addresses_of_its_pods_with_node_readiness_and_role() -> None:
    labels = {"llm-d.ai/role": "prefill-decode", "llm-d.ai/model": "qwen3"}
    found = read_pool(pool(), [pod(labels=labels), pod("qwen-1", address="fd00::7", ready="False")])

    assert found is not None
    assert (found.namespace, found.name, found.model, found.picker) == (
        "ml", "qwen", "qwen3", "qwen-epp",
    )  # fmt: skip
    assert [(one.url, one.node, one.ready, one.role) for one in found.endpoints] == [
        ("http://10.0.0.7:8000", "gpu-1", True, "both"),
        ("http://[fd00::7]:8000", "gpu-1", False, ""),
    ]


@pytest.mark.parametrize(
    ("spec", "pods", "note"),
    [
        ({}, [], "no-pods"),
        ({"targetPorts": []}, [pod()], "ports"),
        ({"selector": {}}, [pod()], "selector"),
        ({}, [pod(address=None)], "no-pods"),
    ],
)
def test_why_a_pool_has_no_addresses_is_said(spec: Any, pods: Any, note: str) -> None:
    found = read_pool(pool(**spec), pods)

    assert found is not None
    assert found.note == note


def test_the_selector_is_written_as_the_api_writes_it_in_both_versions() -> None:
    older = pool(selector={"b": "2", "a": "1"}, targetPortNumber=8001, targetPorts=None)

    assert selector_of(pool()) == "app=qwen"
    assert selector_of(older) == "a=1,b=2"
    found = read_pool(older, [pod()])
    assert found is not None
    assert found.endpoints[0].url == "http://10.0.0.7:8001"


def test_what_consort_made_is_left_out() -> None:
    ours = {"app.kubernetes.io/managed-by": "consort"}
    mine = pool()
    mine["metadata"]["labels"] = ours
    labels = {"kubernetes.io/service-name": "qwen", "llm-d.ai/model": "q", **ours}

    assert read_pool(mine, [pod()]) is None
    assert read_slices([endpoint_slice(labels=labels)]) == []


def test_slices_of_one_service_are_one_and_those_of_other_software_do_not_count() -> None:
    other = {"addresses": ["10.0.0.8"], "nodeName": "gpu-2", "conditions": {}}
    foreign = endpoint_slice(labels={"kubernetes.io/service-name": "shop"})

    (found,) = read_slices([endpoint_slice(), endpoint_slice(endpoints=[other]), foreign])

    assert (found.name, found.model) == ("qwen", "qwen3")
    assert [(one.url, one.ready) for one in found.endpoints] == [
        ("http://10.0.0.7:8000", True), ("http://10.0.0.8:8000", None),
    ]  # fmt: skip


def test_a_service_of_kserve_says_its_model_and_leaves_addresses_to_its_pool() -> None:
    service = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "metadata": {"name": "qwen", "namespace": "ml"},
        "spec": {"model": {"name": "Qwen/Qwen3-32B", "uri": "hf://Qwen/Qwen3-32B"}},
    }
    found = read_service(service)

    assert found is not None
    assert (found.model, found.endpoints, found.note) == ("Qwen/Qwen3-32B", (), "address-only")


def test_the_list_is_ordered_and_bounded() -> None:
    many = [read_service({"metadata": {"name": f"s{number:03}"}}) for number in range(300)]

    listed = shown([each for each in reversed(many) if each])

    assert len(listed) == MOST_OBJECTS
    assert [each["name"] for each in listed[:2]] == ["s000", "s001"]


@given(anything, anything, anything)
def test_whatever_objects_hold_is_read_without_an_error(spec: Any, item: Any, labels: Any) -> None:
    odd = {"metadata": {"name": "a", "labels": labels}, "spec": spec, "endpoints": item}

    read_pool(odd, [odd, {"status": item}])
    read_service(odd)
    read_slices([odd, item, {"metadata": {"labels": labels}, "endpoints": item, "ports": item}])
