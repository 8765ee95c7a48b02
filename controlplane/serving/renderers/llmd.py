"""llm-d: Deployments with its labels, its real router as the picker, InferencePool and HTTPRoute.

Where prefill runs apart, a sidecar stands before every engine that decodes: it takes the requests
on the pool's port and has the prompt computed at the address that the picker named. The engine
then listens on port 8200 for its own Pod. Flags of the sidecar and that port: llm-d Router 0.10.
"""

from collections.abc import Mapping
from dataclasses import replace

from controlplane.serving.renderers import _gateway, _picker, plain
from controlplane.serving.renderers._patching import patched
from controlplane.serving.renderers._pods import claim_template
from controlplane.serving.renderers.base import (
    EngineGroup,
    Manifest,
    PickerReference,
    PoolLayout,
    Renderer,
    RenderRefusedError,
    is_disaggregated,
)

ENGINE_PORT = 8200
_CONNECTORS: Mapping[str, str] = {"vllm": "nixlv2", "simulated": "nixlv2", "sglang": "sglang"}
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - inside a Pod, for the sidecar's loopback and for probes


class Llmd:
    """llm-d's objects without its charts."""

    slug = "llm-d"
    sentence = "llm-d: engines with its labels, its own router as the picker, an InferencePool."

    def render(self, layout: PoolLayout) -> list[Manifest]:
        """Picker, pool, route, budgets, engines. Raises RenderRefusedError."""
        if layout.picker is not None:
            raise RenderRefusedError(
                "picker",
                f"llm-d brings its own picker, and containers.picker names {layout.picker.name}. "
                "Leave containers.picker out, or render plain manifests.",
            )
        if layout.as_set and is_disaggregated(layout.groups):
            raise RenderRefusedError(
                "as_set",
                "The sidecar of decode engines is not rendered into a DisaggregatedSet. "
                "Leave containers.disaggregated_set out, or render plain manifests.",
            )
        picker = PickerReference(name=_picker.picker_name(layout), port=_picker.EXT_PROC)
        shared = _gateway.shared_manifests(replace(layout, picker=picker))
        engines = [one for group in layout.groups for one in _engine(group, layout)]
        return [*_picker.picker_manifests(layout), *shared, *engines]


def _engine(group: EngineGroup, layout: PoolLayout) -> list[Manifest]:
    labelled = replace(group, labels={**group.labels, "llm-d.ai/inference-serving": "true"})
    if is_disaggregated(layout.groups) and group.role != "prefill":
        workload = _behind_sidecar(labelled, layout.picker_images.sidecar)
    else:
        workload = plain.bare_workload(labelled)
    claim = claim_template(labelled)
    return [*([claim] if claim else []), patched(workload, group.patch)]


def _behind_sidecar(group: EngineGroup, image: str) -> Manifest:
    if group.nodes > 1:
        raise RenderRefusedError(
            "nodes",
            f"{group.name} decodes over {group.nodes} nodes; a sidecar before the first of them "
            "is not rendered. Render plain manifests.",
        )
    if not image:
        raise RenderRefusedError(
            "picker_images.sidecar",
            "Prefill runs apart, and no image of llm-d's sidecar is set. Set "
            "containers.llmd.sidecar to an image with its tag or digest.",
        )
    if group.engine not in _CONNECTORS:
        known = ", ".join(sorted(_CONNECTORS))
        raise RenderRefusedError(
            "engine", f"llm-d's sidecar has no connector for {group.engine}; known: {known}."
        )
    inner = replace(
        group,
        argv=with_options(group.argv, {"--host": _EVERYWHERE, "--port": str(ENGINE_PORT)}),
        ports=replace(group.ports, http=ENGINE_PORT),
    )
    workload = plain.bare_workload(inner)
    pod = workload["spec"]["template"]["spec"]
    pod["initContainers"] = [_sidecar(group, image)]
    # The pool's port is the sidecar's; that of the engine is for its probes.
    pod["containers"][0]["ports"][0]["name"] = "engine"
    for probe in ("startupProbe", "readinessProbe"):
        pod["containers"][0][probe]["httpGet"]["port"] = "engine"
    return workload


def with_options(argv: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """The command with other values of options that it has. Raises RenderRefusedError."""
    words = list(argv)
    for option, value in values.items():
        if option not in words[:-1]:
            raise RenderRefusedError(
                "argv", f"The engine's command has no {option}, so it cannot be moved."
            )
        words[words.index(option) + 1] = value
    return tuple(words)


def _sidecar(group: EngineGroup, image: str) -> Manifest:
    return {
        "name": "routing-sidecar",
        "image": image,
        # Started before the engine and ended after it, so that answers can finish.
        "restartPolicy": "Always",
        "args": [
            f"--port={group.ports.http}",
            f"--kv-connector={_CONNECTORS[group.engine]}",
            "--secure-proxy=false",
        ],
        "ports": [{"name": "http", "containerPort": group.ports.http, "protocol": "TCP"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


RENDERER: Renderer = Llmd()
