"""Groups of engines with valid defaults, and what the client's typed models say of a manifest."""

from typing import Any

from kubernetes import client

from controlplane.serving.renderers.base import EngineGroup, ExtendedResource, Manifest, Ports


def make_group(**overrides: Any) -> EngineGroup:
    values: dict[str, Any] = {
        "name": "gpu-1-0", "namespace": "llm", "pool": "llama", "role": "both",
        "hostnames": ("gpu-1",), "model": "llama-3.1-8b",
        "model_name": "meta-llama/Llama-3.1-8B-Instruct", "engine": "vllm", "vendor": "nvidia",
        "accelerator": "nvidia-h100-nvl", "image": "registry.example/vllm:0.32.0",
        "argv": ("vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"),
        "devices": ExtendedResource(name="nvidia.com/gpu"), "ports": Ports(kv_events=5557),
    }  # fmt: skip
    return EngineGroup(**values | overrides)


TYPED = {
    ("apps/v1", "Deployment"): client.V1Deployment,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): client.V1ResourceClaimTemplate,
}


def refuse_unknown_fields(manifest: Manifest) -> None:
    """The typed models forbid what they do not know, so a misspelt field fails here."""
    TYPED[manifest["apiVersion"], manifest["kind"]].model_validate(manifest)


def engine_container(manifest: Manifest) -> Manifest:
    """The container of the engine in a Deployment."""
    found: Manifest = manifest["spec"]["template"]["spec"]["containers"][0]
    return found
