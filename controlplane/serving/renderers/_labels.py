"""Labels of engines: ours, by which objects are found and ended, and those that routers read.

Values of `llm-d.ai/role` and `llm-d.ai/engine-type`: llm-d Router 0.10.0. A group of role both is
`prefill-decode`; an engine of another type gets no type, which readers take for vLLM.
"""

from collections.abc import Mapping

from controlplane.serving.renderers.base import EngineGroup, Manifest
from inventory.kubernetes import labels

LLMD_ROLE = "llm-d.ai/role"
LLMD_ROLES: Mapping[str, str] = {
    "prefill": "prefill",
    "decode": "decode",
    "both": "prefill-decode",
}
_ENGINE_TYPES: Mapping[str, str] = {"vllm": "vllm", "sglang": "sglang", "simulated": "vllm"}


def selector(group: EngineGroup) -> dict[str, str]:
    """What chooses the Pods of a group and no others; it never changes for a name."""
    return {labels.WORKLOAD: labels.label_value(group.name)}


def pool_selector(pool: str, role: str = "") -> dict[str, str]:
    """What chooses the Pods of a pool, or of one of its roles."""
    chosen = {labels.POOL: labels.label_value(pool)}
    return chosen | ({LLMD_ROLE: LLMD_ROLES[role]} if role else {})


def owned(pool: str) -> dict[str, str]:
    """Labels of an object that belongs to a whole pool."""
    return {labels.MANAGED_BY: labels.MANAGER} | pool_selector(pool)


def engine_labels(group: EngineGroup) -> dict[str, str]:
    """Labels of a group's objects and Pods; ours win over those that were asked for."""
    told = {
        LLMD_ROLE: LLMD_ROLES[group.role],
        "llm-d.ai/engine-type": _ENGINE_TYPES.get(group.engine, ""),
        "llm-d.ai/model": labels.label_value(group.model),
        "llm-d.ai/accelerator-vendor": labels.label_value(group.vendor),
        "llm-d.ai/accelerator-variant": labels.label_value(group.accelerator),
    }
    ours = {key: value for key, value in told.items() if value}
    return {**group.labels, **ours, **owned(group.pool), **selector(group)}


def further_labels(group: EngineGroup) -> dict[str, str]:
    """Labels of an engine's Pods on further nodes: they answer nobody, so no pool finds them."""
    apart = {labels.POOL, LLMD_ROLE}
    return {key: value for key, value in engine_labels(group).items() if key not in apart}


def metadata(group: EngineGroup, *, name: str = "") -> Manifest:
    """Metadata of one of a group's objects."""
    meta: Manifest = {
        "name": name or labels.object_name(group.name),
        "namespace": group.namespace,
        "labels": engine_labels(group),
    }
    return meta | ({"annotations": dict(group.annotations)} if group.annotations else {})


def pool_metadata(pool: str, namespace: str, *, name: str) -> Manifest:
    """Metadata of an object that belongs to a whole pool."""
    return {"name": name, "namespace": namespace, "labels": owned(pool)}
