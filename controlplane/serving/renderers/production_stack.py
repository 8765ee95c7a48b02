"""vLLM production-stack: engines with its labels, and its router's DynamicRouterConfig.

The router reads its file again every ten seconds and shows at `/health` what is in force, so the
ConfigMap keeps its name and a change is done when both are equal. An unknown key would make it
refuse the whole file. Fields: `DynamicRouterConfig` of August 2026.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import yaml

from controlplane.serving.renderers import _gateway, _labels, plain
from controlplane.serving.renderers.base import (
    EngineGroup,
    Manifest,
    PoolLayout,
    Renderer,
    RenderRefusedError,
    is_disaggregated,
)
from inventory.kubernetes import labels

MODEL_LABEL = "model"
"""The router tells prefill and decode apart by the value of this label of a Pod."""
CONFIG_FILE = "dynamic_config.yaml"
_LOGICS: Mapping[str, str] = {
    "round-robin": "roundrobin",
    "session-hash": "session",
    "sglang-cache-aware": "prefixaware",
}


class ProductionStack:
    """Engines and the router's file; the router itself comes with its chart."""

    slug = "production-stack"
    sentence = "vLLM production-stack: engines with its labels and its router's configuration."

    def render(self, layout: PoolLayout) -> list[Manifest]:
        """Configuration, Service, budgets, engines. Raises RenderRefusedError."""
        ports = sorted({group.ports.http for group in layout.groups})
        if len(ports) != 1:
            raise RenderRefusedError(
                "ports.http",
                f"The router knows one port of all engines, and the pool's listen on {ports}.",
            )
        groups = tuple(_labelled(group) for group in layout.groups)
        config = _config(layout, groups, port=ports[0])
        shared = _gateway.shared_manifests(layout)
        return [config, *shared, *plain.workloads(replace(layout, groups=groups))]


def _labelled(group: EngineGroup) -> EngineGroup:
    value = labels.label_value(f"{group.pool}-{group.role}")
    return replace(group, labels={**group.labels, MODEL_LABEL: value})


def _config(layout: PoolLayout, groups: Sequence[EngineGroup], *, port: int) -> Manifest:
    selector = labels.selector(_labels.pool_selector(layout.pool))
    values: Manifest = {
        "service_discovery": "k8s",
        "k8s_namespace": layout.namespace,
        "k8s_port": port,
        "k8s_label_selector": selector,
        **_routing(layout, groups),
    }
    name = labels.object_name(f"{layout.pool}-router-config")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _labels.pool_metadata(layout.pool, layout.namespace, name=name),
        "data": {CONFIG_FILE: yaml.safe_dump(values, sort_keys=True)},
    }


def _routing(layout: PoolLayout, groups: Sequence[EngineGroup]) -> Manifest:
    name = layout.policy.name if layout.policy else "round-robin"
    if is_disaggregated(groups):
        # Its P/D logic chooses by itself; any policy but its own would be dropped in silence.
        if name != "round-robin":
            raise RenderRefusedError(
                "policy",
                f"With prefill and decode apart the production-stack's router takes turns, and the "
                f"pool's policy is '{name}'. Ask with the policy 'round-robin'.",
            )
        by_role = {
            role: ",".join(sorted({g.labels[MODEL_LABEL] for g in groups if g.role == role}))
            for role in ("prefill", "decode")
        }
        if not all(by_role.values()):
            raise RenderRefusedError(
                "role", "The production-stack's router needs engines of prefill and of decode."
            )
        return {
            "routing_logic": "disaggregated_prefill_orchestrated",
            "prefill_model_labels": by_role["prefill"],
            "decode_model_labels": by_role["decode"],
        }
    if name not in _LOGICS:
        raise RenderRefusedError(
            "policy",
            f"The production-stack's router has no policy '{name}'. Policies it shares with ours: "
            f"{', '.join(sorted(_LOGICS))}.",
        )
    found = {"routing_logic": _LOGICS[name]}
    return found | ({"session_key": "x-session-id"} if name == "session-hash" else {})


RENDERER: Renderer = ProductionStack()
