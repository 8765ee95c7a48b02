"""A cluster with many nodes and engines, for measurements of what lists and rounds cost."""

from tests.kubernetes.fake.cluster import FakeCluster
from tests.kubernetes.fake.nodes import VENDORS, resource_slice
from tests.kubernetes.fake.store import Object

DEVICES = 8
IMAGES = {
    "nvidia": ("nvidia.com/gpu", "vllm/vllm-openai:v0.11.0"),
    "amd": ("amd.com/gpu", "rocm/vllm:v0.11.0"),
    "habana": ("habana.ai/gaudi", "vault.habana.ai/vllm:v1.22"),
}
NAMESPACE = "engines"


def fill(cluster: FakeCluster, *, nodes: int, engines: int, slices: bool = False) -> None:
    """Add nodes of all vendors in turn and engines on them, one accelerator each, all running.

    Raises ValueError when the engines do not fit.
    """
    if engines > nodes * DEVICES:
        raise ValueError(f"{nodes} nodes have room for {nodes * DEVICES} engines, not {engines}")
    vendors = sorted(VENDORS)
    for number in range(nodes):
        name = f"node-{number:05}"
        cluster.add_node(name, vendors[number % len(vendors)])
        if slices and vendors[number % len(vendors)] == "nvidia":
            cluster.create(resource_slice(f"{name}-gpus", name, "gpu.nvidia.com", _devices(name)))
    if engines:
        meta = {"name": NAMESPACE}
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    for number in range(engines):
        place = number % nodes
        cluster.create(_engine(number, f"node-{place:05}", vendors[place % len(vendors)]))
    cluster.settle()


def _devices(node: str) -> list[Object]:
    return [
        {
            "name": f"gpu-{number}",
            "attributes": {
                "uuid": {"string": f"GPU-{node}-{number}"},
                "productName": {"string": "NVIDIA H100 80GB HBM3"},
            },
            "capacity": {"memory": {"value": "81559Mi"}},
        }
        for number in range(DEVICES)
    ]


def _engine(number: int, node: str, vendor: str) -> Object:
    resource, image = IMAGES[vendor]
    name = f"engine-{number:05}"
    labels = {"app.kubernetes.io/managed-by": "somebody", "app": name}
    container = {
        "name": "engine",
        "image": image,
        "args": ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--port", "8000"],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {resource: "1"}},
    }
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
