"""Plain Kubernetes: a Deployment for each group, with what it needs and nothing else.

An engine over several nodes is a LeaderWorkerSet, a group with stable names a StatefulSet; prefill
and decode are one DisaggregatedSet where that is asked for. To the pool belong a headless Service,
a disruption budget for each role, and InferencePool with HTTPRoute where a gateway is named.
"""

from controlplane.serving.renderers import _gateway, _labels, _pods, _sets
from controlplane.serving.renderers._patching import patched
from controlplane.serving.renderers.base import (
    EngineGroup,
    Manifest,
    PoolLayout,
    Renderer,
    RenderRefusedError,
)
from inventory.kubernetes import labels

IMAGE_SECONDS = 1800
"""Time for pulling an image, on top of the time to load the weights."""
MOST_SET_NAME = 52
"""A StatefulSet's name goes on into a label with a hash of eleven characters."""


class Plain:
    """Kubernetes' own objects; only engines over several nodes need a further kind."""

    slug = "plain"
    sentence = "Kubernetes' own objects: Deployments, a Service and disruption budgets."

    def render(self, layout: PoolLayout) -> list[Manifest]:
        """What the pool shares, then each group. Raises RenderRefusedError."""
        return [*_gateway.shared_manifests(layout), *workloads(layout)]


def workloads(layout: PoolLayout) -> list[Manifest]:
    """What runs the pool's groups. Raises RenderRefusedError."""
    if layout.as_set:
        claims = [_pods.claim_template(group) for group in layout.groups]
        return [*(claim for claim in claims if claim), _sets.disaggregated_set(layout)]
    return [manifest for group in layout.groups for manifest in engine_manifests(group)]


def engine_manifests(group: EngineGroup) -> list[Manifest]:
    """What runs one group: claim template if devices are claimed, then the workload, patched.

    Raises RenderRefusedError.
    """
    claim = _pods.claim_template(group)
    return [*([claim] if claim else []), patched(bare_workload(group), group.patch)]


def bare_workload(group: EngineGroup) -> Manifest:
    """The workload as it is without the operator's patch. Raises RenderRefusedError."""
    if group.nodes > 1:
        if group.has_stable_names:
            raise RenderRefusedError(
                "has_stable_names",
                f"{group.name} spans {group.nodes} nodes, and a LeaderWorkerSet gives its Pods "
                "their names. Leave containers.stable_names out.",
            )
        return _sets.leader_worker_set(group)
    return _stateful_set(group) if group.has_stable_names else _deployment(group)


def _deployment(group: EngineGroup) -> Manifest:
    spec: Manifest = {
        "strategy": _strategy(group),
        "progressDeadlineSeconds": IMAGE_SECONDS + group.start_seconds,
        **_common_spec(group),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _labels.metadata(group),
        "spec": spec,
    }


def _strategy(group: EngineGroup) -> Manifest:
    """An accelerator is free only after its engine ended, so there is nothing to surge into.

    Of several engines one at a time changes, so that the others go on answering.
    """
    if group.replicas == 1:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def _stateful_set(group: EngineGroup) -> Manifest:
    spec: Manifest = {
        "serviceName": labels.object_name(group.pool),
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate"},
        **_common_spec(group),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _labels.metadata(group, name=labels.object_name(group.name, MOST_SET_NAME)),
        "spec": spec,
    }


def _common_spec(group: EngineGroup) -> Manifest:
    spec: Manifest = {
        "selector": {"matchLabels": _labels.selector(group)},
        "revisionHistoryLimit": 2,
        "template": _pods.pod_template(group),
    }
    return spec if group.replicas is None else spec | {"replicas": group.replicas}


RENDERER: Renderer = Plain()
