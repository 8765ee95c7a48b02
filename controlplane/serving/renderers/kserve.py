"""KServe: one LLMInferenceService (`serving.kserve.io/v1alpha2`) for the whole pool.

Its upper fields are the decode role, or the only one; `prefill` is the other. KServe writes the
command itself and takes further options from the variable VLLM_ADDITIONAL_ARGS, so the engine's
own options go there. Probes, ports and the sidecar are KServe's affair. A number of replicas that
an autoscaler owns is left out.
"""

import shlex
from collections.abc import Sequence

from controlplane.serving.renderers import _labels, _pods
from controlplane.serving.renderers._gateway import pool_name
from controlplane.serving.renderers._picker import picker_config
from controlplane.serving.renderers.base import (
    ArtefactVolume,
    EngineGroup,
    Manifest,
    PoolLayout,
    Renderer,
    RenderRefusedError,
    is_disaggregated,
)
from routing.llmd.reading import tree_of

CONTAINER = "main"
"""KServe puts its presets and ours together by the container's name."""
_WRITTEN_BY_KSERVE = frozenset({"--host", "--port", "--served-model-name", "--revision"})
_SET_BY_KSERVE = frozenset({_labels.LLMD_ROLE})


class Kserve:
    """A pool as an object of KServe; for vLLM only."""

    slug = "kserve"
    sentence = "KServe's LLMInferenceService: vLLM only, with llm-d's scheduler run by KServe."

    def render(self, layout: PoolLayout) -> list[Manifest]:
        """Claim templates, then the service. Raises RenderRefusedError."""
        _refuse_what_it_lacks(layout)
        claims = [_pods.claim_template(group) for group in layout.groups]
        return [*(claim for claim in claims if claim), _service(layout)]


def _refuse_what_it_lacks(layout: PoolLayout) -> None:
    for group in layout.groups:
        if group.engine != "vllm":
            raise RenderRefusedError(
                "engine", f"KServe runs vLLM only, and the pool's engine is {group.engine}."
            )
        if group.nodes > 1:
            raise RenderRefusedError(
                "nodes",
                "KServe lays an engine over several nodes by presets of its own and takes no "
                f"command for them; {group.name} spans {group.nodes}. Render plain manifests.",
            )
        if group.patch:
            raise RenderRefusedError(
                "patch",
                f"The patch of role {group.role} is for a Deployment, and KServe makes that "
                "itself. Leave containers.patches out, or render plain manifests.",
            )
        if group.has_stable_names:
            raise RenderRefusedError(
                "has_stable_names", "KServe makes Deployments, whose Pods have no stable names."
            )
    if layout.picker is not None:
        raise RenderRefusedError(
            "picker", "KServe runs its own picker. Leave containers.picker out."
        )
    if layout.gateway is not None and layout.gateway.hostnames:
        raise RenderRefusedError(
            "gateway.hostnames",
            "The route that KServe manages takes no host names. Leave containers.gateway.hostnames "
            "out, or render plain manifests.",
        )


def _service(layout: PoolLayout) -> Manifest:
    main = _only(layout.groups, ("decode", "both"))
    if main is None:
        raise RenderRefusedError(
            "role", f"The pool {layout.pool} has no engine that decodes, so it answers nobody."
        )
    spec = {"model": _model(main), **_workload(main), "router": _router(layout)}
    prefill = _only(layout.groups, ("prefill",))
    if prefill is not None:
        spec["prefill"] = _workload(prefill)
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": _labels.pool_metadata(layout.pool, layout.namespace, name=pool_name(layout)),
        "spec": spec,
    }


def _only(groups: Sequence[EngineGroup], roles: tuple[str, ...]) -> EngineGroup | None:
    found = [group for group in groups if group.role in roles]
    if len(found) > 1:
        kinds = ", ".join(sorted(f"{group.role} on {group.accelerator}" for group in found))
        raise RenderRefusedError(
            "groups",
            f"KServe has one template for each role, and the pool has {len(found)}: {kinds}. "
            "Render plain or llm-d manifests.",
        )
    return found[0] if found else None


def _model(group: EngineGroup) -> Manifest:
    return {"name": group.model, "uri": _uri(group)}


def _uri(group: EngineGroup) -> str:
    artefact = group.artefact
    if artefact is None:
        return f"hf://{group.model_name}" + (f":{group.revision}" if group.revision else "")
    return _volume_uri(artefact)


def _volume_uri(artefact: ArtefactVolume) -> str:
    if artefact.kind == "pvc":
        return f"pvc://{artefact.source}" + (f"/{artefact.sub_path}" if artefact.sub_path else "")
    if artefact.kind == "oci":
        return f"oci://{artefact.source}"
    raise RenderRefusedError(
        "artefact",
        f"KServe takes models from hf://, s3://, pvc:// and oci://, and {artefact.source} is a "
        "folder of a node. Use a volume claim, or render plain manifests.",
    )


def _workload(group: EngineGroup) -> Manifest:
    labels = {
        key: value
        for key, value in _labels.engine_labels(group).items()
        if key not in _SET_BY_KSERVE
    }
    found: Manifest = {"labels": labels, "template": _template(group)}
    return found if group.replicas is None else found | {"replicas": group.replicas}


def _template(group: EngineGroup) -> Manifest:
    """Our Pod without what KServe brings: command, ports, probes and the model's files."""
    spec = _pods.pod_spec(group, argv=())
    spec["volumes"] = [one for one in spec["volumes"] if one["name"] != "model"]
    (container,) = spec["containers"]
    mounts = [one for one in container["volumeMounts"] if one["name"] != "model"]
    options = {"name": "VLLM_ADDITIONAL_ARGS", "value": shlex.join(_options(group))}
    spec["containers"] = [
        container | {"name": CONTAINER, "env": [*container["env"], options], "volumeMounts": mounts}
    ]
    return spec


def _options(group: EngineGroup) -> list[str]:
    """The engine's options without the program, the model and what KServe writes itself."""
    words = list(group.argv)
    first = next((place for place, word in enumerate(words) if word.startswith("--")), len(words))
    kept: list[str] = []
    is_left_out = False
    for word in words[first:]:
        if word.startswith("--"):
            is_left_out = word.partition("=")[0] in _WRITTEN_BY_KSERVE
        if not is_left_out:
            kept.append(word)
    return kept


def _router(layout: PoolLayout) -> Manifest:
    gateway = layout.gateway
    reference: Manifest = {}
    if gateway is not None:
        named = {"name": gateway.name, "namespace": gateway.namespace or layout.namespace}
        reference = {"refs": [named]}
    scheduler: Manifest = {}
    # With nothing said KServe's own default runs, which differs for prefill and decode apart.
    if layout.policy is not None or is_disaggregated(layout.groups):
        scheduler = {"config": {"inline": tree_of(picker_config(layout))}}
    return {"route": {}, "gateway": reference, "scheduler": scheduler}


RENDERER: Renderer = Kserve()
