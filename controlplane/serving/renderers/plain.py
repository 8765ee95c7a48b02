"""Plain Kubernetes: a Deployment for each group, with what it needs and nothing else."""

from controlplane.serving.renderers import _labels, _pods
from controlplane.serving.renderers.base import EngineGroup, Manifest, PoolLayout, Renderer

IMAGE_SECONDS = 1800
"""Time for pulling an image, on top of the time to load the weights."""


class Plain:
    """Deployments and Services of Kubernetes itself; works in every cluster."""

    slug = "plain"
    sentence = "Kubernetes' own objects; works in every cluster."

    def render(self, layout: PoolLayout) -> list[Manifest]:
        """Claims and Deployments of each group."""
        return [manifest for group in layout.groups for manifest in engine_manifests(group)]


def engine_manifests(group: EngineGroup) -> list[Manifest]:
    """What runs one group: claim template if devices are claimed, then the Deployment.

    Raises RenderRefusedError.
    """
    claim = _pods.claim_template(group)
    return [*([claim] if claim else []), _deployment(group)]


def _deployment(group: EngineGroup) -> Manifest:
    spec: Manifest = {
        "selector": {"matchLabels": _labels.selector(group)},
        # An accelerator is free only after the old engine ended, so there is nothing to surge into.
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 2,
        "progressDeadlineSeconds": IMAGE_SECONDS + group.start_seconds,
        "template": _pods.pod_template(group),
    }
    if group.replicas is not None:
        spec["replicas"] = group.replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _labels.metadata(group),
        "spec": spec,
    }


RENDERER: Renderer = Plain()
