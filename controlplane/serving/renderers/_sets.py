"""Engines that are more than one Pod: LeaderWorkerSet, and prefill and decode as one set.

`leaderworkerset.x-k8s.io/v1` and `disaggregatedset.x-k8s.io/v1` of LWS 0.10.0. A group of Pods
starts and ends together: when one of them fails, all of its engine start again, since an engine
that lost a node answers nobody. A revision of a DisaggregatedSet replaces both roles together.
"""

from collections import Counter

from controlplane.serving.renderers import _labels, _pods
from controlplane.serving.renderers.base import (
    EngineGroup,
    Manifest,
    PoolLayout,
    RenderRefusedError,
)
from inventory.kubernetes import labels

MOST_NAME = 50
"""The name goes on into labels with a hash of ten characters and a role."""


def leader_worker_set(group: EngineGroup) -> Manifest:
    """An engine over several nodes. Raises RenderRefusedError without a command for the others."""
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": _labels.metadata(group, name=labels.object_name(group.name, MOST_NAME)),
        "spec": set_spec(group),
    }


def set_spec(group: EngineGroup) -> Manifest:
    """Spec of a LeaderWorkerSet; an engine of one node is a set of one Pod."""
    if group.nodes > 1 and not group.worker_argv:
        raise RenderRefusedError(
            "worker_argv",
            f"{group.name} spans {group.nodes} nodes and has no command for the further ones. "
            "Set containers.span.worker_arguments.",
        )
    template: Manifest = {
        "size": group.nodes,
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": _pods.pod_template(group),
        "workerTemplate": _pods.further_template(group),
    }
    spec: Manifest = {"leaderWorkerTemplate": template, "startupPolicy": "LeaderCreated"}
    return spec if group.replicas is None else spec | {"replicas": group.replicas}


def disaggregated_set(layout: PoolLayout) -> Manifest:
    """Prefill and decode of a pool as one object. Raises RenderRefusedError."""
    roles = Counter(group.role for group in layout.groups)
    for role in ("prefill", "decode"):
        if roles[role] == 0:
            raise RenderRefusedError(
                "role", f"A set of prefill and decode needs both, and the pool has no {role}."
            )
    return {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": _labels.pool_metadata(
            layout.pool, layout.namespace, name=labels.object_name(layout.pool, MOST_NAME)
        ),
        "spec": {"roles": [_role(group, alone=roles[group.role] == 1) for group in layout.groups]},
    }


def _role(group: EngineGroup, *, alone: bool) -> Manifest:
    """A role is named after its role, and after its accelerator where several share one."""
    if group.replicas is None:
        raise RenderRefusedError(
            "replicas",
            "A DisaggregatedSet states the number of every role's engines, and an autoscaler owns "
            "the pool's. Render without the set.",
        )
    if group.patch:
        raise RenderRefusedError(
            "patch",
            f"The patch of role {group.role} is for an object of its own, and in a "
            "DisaggregatedSet the role is a part of one. Render without the set.",
        )
    name = group.role if alone else labels.object_name(f"{group.role}-{group.accelerator}")
    return {
        "name": name,
        "metadata": {"labels": _labels.engine_labels(group)},
        "spec": set_spec(group),
    }
