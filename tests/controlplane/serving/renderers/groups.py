"""Groups of engines with valid defaults, and what a typed client or a schema says of manifests."""

from typing import Any

from kubernetes import client

from controlplane.serving.renderers.base import (
    EngineGroup,
    ExtendedResource,
    Manifest,
    PoolLayout,
    Ports,
)


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


def make_layout(*groups: EngineGroup, **overrides: Any) -> PoolLayout:
    values: dict[str, Any] = {
        "pool": "llama", "namespace": "llm", "groups": groups or (make_group(),),
    }  # fmt: skip
    return PoolLayout(**values | overrides)


def make_pair(**overrides: Any) -> tuple[EngineGroup, EngineGroup]:
    """A prefill group and a decode group."""
    return (
        make_group(name="llama-prefill", role="prefill", hostnames=(), **overrides),
        make_group(name="llama-decode", role="decode", hostnames=(), **overrides),
    )


TYPED = {
    ("apps/v1", "Deployment"): client.V1Deployment,
    ("apps/v1", "StatefulSet"): client.V1StatefulSet,
    ("policy/v1", "PodDisruptionBudget"): client.V1PodDisruptionBudget,
    ("rbac.authorization.k8s.io/v1", "Role"): client.V1Role,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): client.V1RoleBinding,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): client.V1ResourceClaimTemplate,
    ("v1", "ConfigMap"): client.V1ConfigMap,
    ("v1", "Secret"): client.V1Secret,
    ("v1", "Service"): client.V1Service,
    ("v1", "ServiceAccount"): client.V1ServiceAccount,
}


def is_typed(manifest: Manifest) -> bool:
    """Whether the client has a model of the kind."""
    return (manifest["apiVersion"], manifest["kind"]) in TYPED


def refuse_unknown_fields(manifest: Manifest) -> None:
    """The typed models forbid what they do not know, so a misspelt field fails here."""
    TYPED[manifest["apiVersion"], manifest["kind"]].model_validate(manifest)


def engine_container(manifest: Manifest) -> Manifest:
    """The container of the engine in a Deployment."""
    found: Manifest = manifest["spec"]["template"]["spec"]["containers"][0]
    return found


def kinds(manifests: list[Manifest]) -> list[str]:
    """Kinds in their order."""
    return [manifest["kind"] for manifest in manifests]
