"""Node objects and ResourceSlices as vendors' software writes them."""

from typing import Any

GPU = "nvidia.com/gpu"


def node(name: str = "gpu-1", **parts: Any) -> dict[str, Any]:
    """A ready node; parts: labels, capacity, allocatable (as capacity), taints, ready, cordon."""
    capacity = parts.get("capacity", {})
    spec: dict[str, Any] = {}
    if parts.get("cordon"):
        spec["unschedulable"] = True
    if "taints" in parts:
        spec["taints"] = parts["taints"]
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **parts.get("labels", {})},
        },
        "spec": spec,
        "status": {
            "capacity": {"cpu": "64", "memory": "1Ti", **capacity},
            "allocatable": {"cpu": "64", "memory": "1Ti", **parts.get("allocatable", capacity)},
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": parts.get("ready", "True"), "message": "kubelet says"},
            ],
        },
    }


def h100(name: str = "gpu-1", count: int = 8, **parts: Any) -> dict[str, Any]:
    """A node as NVIDIA's device plugin and labeller write it."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.count": str(count),
    }  # fmt: skip
    parts["labels"] = labels | parts.get("labels", {})
    return node(name, **{"capacity": {GPU: str(count)}} | parts)


def resource_slice(
    name: str = "gpu-1", count: int = 8, *, driver: str = "gpu.nvidia.com", **parts: Any
) -> dict[str, Any]:
    """A slice with whole devices; `devices` replaces them, `generation` and `slices` the pool's."""
    return {
        "metadata": {"name": f"{name}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": name,
            "pool": {
                "name": name,
                "generation": parts.get("generation", 1),
                "resourceSliceCount": parts.get("slices", 1),
            },
            "devices": parts.get("devices", [device(number) for number in range(count)]),
        },
    }


def device(number: int, **attributes: Any) -> dict[str, Any]:
    """A whole GPU with its UUID."""
    values = {"type": "gpu", "uuid": f"GPU-{number}", "productName": "NVIDIA H100 80GB HBM3"}
    return {
        "name": f"gpu-{number}",
        "attributes": {
            key: {"bool" if isinstance(value, bool) else "string": value}
            for key, value in (values | attributes).items()
        },
        "capacity": {"memory": {"value": "81559Mi"}},
    }
