"""Nodes as the vendors' device plugins and labellers write them, without machines."""

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]
READY = "Ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

VENDORS: dict[str, Object] = {
    "nvidia": {
        "labels": {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            "nvidia.com/gpu.memory": "81559",
            "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.family": "hopper",
            "nvidia.com/gpu.compute.major": "9",
            "nvidia.com/gpu.compute.minor": "0",
            "nvidia.com/mig.capable": "true",
        },
        "resources": {"nvidia.com/gpu": "8"},
    },
    "amd": {
        "labels": {
            "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
            "amd.com/gpu.vram": "192G",
            "amd.com/gpu.family": "AI",
            "amd.com/gpu.device-id": "74a1",
            "amd.com/gpu.cu-count": "304",
        },
        "resources": {"amd.com/gpu": "8"},
    },
    "habana": {
        "labels": {"feature.node.kubernetes.io/pci-1da3.present": "true"},
        "resources": {"habana.ai/gaudi": "8"},
    },
}


def node(
    name: str,
    vendor: str = "nvidia",
    *,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
) -> Object:
    """A ready Node of a vendor; `resources` takes the place of the vendor's own."""
    facts = VENDORS[vendor]
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "250", "ephemeral-storage": "2Ti"}
    amounts |= facts["resources"] if resources is None else resources
    own = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own | facts["labels"] | dict(labels or {})},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                condition(READY, "True", "KubeletReady", "kubelet is posting ready status")
            ],
            "addresses": [
                {"type": "InternalIP", "address": "192.0.2.10"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "fake",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.8.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.2",
                "machineID": "fake",
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04.3 LTS",
                "systemUUID": "fake",
            },
        },
    }


def condition(kind: str, status: str, reason: str, message: str = "", at: str = "") -> Object:
    """A condition of a Node, Pod or workload."""
    stamp = {"lastTransitionTime": at} if at else {}
    return {"type": kind, "status": status, "reason": reason, "message": message} | stamp


def is_ready(item: Object) -> bool:
    """Whether the condition Ready of a Node or Pod is True."""
    found = (item.get("status") or {}).get("conditions") or []
    return any(entry["type"] == READY and entry["status"] == "True" for entry in found)


def lost(item: Object, at: str) -> Object:
    """The Node after its kubelet fell silent: Ready is unknown, and taints say so."""
    status = item["status"] | {
        "conditions": [
            condition(
                READY, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", at
            )
        ]
    }
    taints = [
        {"key": UNREACHABLE, "effect": effect, "timeAdded": at}
        for effect in ("NoSchedule", "NoExecute")
    ]
    return item | {"status": status, "spec": item.get("spec", {}) | {"taints": taints}}


def found(item: Object, at: str) -> Object:
    """The Node after its kubelet is back."""
    ready = condition(READY, "True", "KubeletReady", "kubelet is posting ready status", at)
    spec = {key: value for key, value in item.get("spec", {}).items() if key != "taints"}
    return item | {"status": item["status"] | {"conditions": [ready]}, "spec": spec}


def resource_slice(name: str, node_name: str, driver: str, devices: list[Object]) -> Object:
    """A ResourceSlice that lists the devices of one node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }
