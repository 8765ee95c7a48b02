"""Objects of one engine as a cluster shows them, after Kubernetes 1.36; tests change parts."""

import copy
from typing import Any

from controlplane.serving.targets.kubernetes import stamping

Object = dict[str, Any]

NAME, NODE, HASH = "gpu-1-0.kr1", "gpu-1", "ab" * 32
LABELS = {
    "app.kubernetes.io/managed-by": "consort", "consort.dev/workload": NAME,
    "consort.dev/pool": "granite",
}  # fmt: skip


def manifest(**spec: Any) -> Object:
    """The Deployment as it is wanted."""
    container = {
        "name": "engine", "image": "registry.example/vllm:1", "command": ["vllm", "serve"],
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"memory": "1Gi"}},
    }  # fmt: skip
    wanted = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "gpu-1-0-kr1", "namespace": "llm", "labels": dict(LABELS)},
        "spec": {
            "replicas": 1, "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": {"containers": [container]}},
        } | spec,
    }  # fmt: skip
    return stamping.with_hash([wanted], HASH)[0]


def deployment(**status: Any) -> Object:
    """The Deployment as the server has it: what was applied, with defaults and a status."""
    found = stamping.with_holder(copy.deepcopy(manifest()), generation=3, token=7)
    found["metadata"] |= {"uid": "d-1", "generation": 2, "resourceVersion": "10"}
    found["spec"] |= {"progressDeadlineSeconds": 600, "revisionHistoryLimit": 10}
    found["status"] = {
        "observedGeneration": 2,
        "replicas": 1,
        "updatedReplicas": 1,
        "conditions": [],
    } | status
    return found


def pod(*, ready: bool = True, **status: Any) -> Object:
    """Its Pod, running."""
    running = {
        "name": "engine", "restartCount": 0, "ready": ready, "started": True,
        "state": {"running": {"startedAt": "2026-12-01T10:00:00Z"}},
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "gpu-1-0-kr1-abc", "namespace": "llm", "uid": "p-1", "labels": dict(LABELS),
            "creationTimestamp": "2026-12-01T09:59:00Z",
            "annotations": {"consort.dev/spec-hash": HASH},
        },
        "spec": {"nodeName": NODE, **manifest()["spec"]["template"]["spec"]},
        "status": {
            "phase": "Running", "podIP": "10.1.2.3", "containerStatuses": [running],
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "True" if ready else "False",
                 "reason": "" if ready else "ContainersNotReady"},
            ],
        } | status,
    }  # fmt: skip


def pending(reason: str, message: str) -> Object:
    """A Pod that found no node."""
    found = pod(
        phase="Pending", podIP="", containerStatuses=[],
        conditions=[
            {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        ],
    )  # fmt: skip
    del found["spec"]["nodeName"]
    return found


def waiting(reason: str, message: str = "", **more: Any) -> Object:
    """A Pod whose container does not run."""
    status = {
        "name": "engine", "restartCount": 0, "ready": False, "started": False,
        "state": {"waiting": {"reason": reason, "message": message}},
    } | more  # fmt: skip
    return pod(ready=False, phase="Pending", containerStatuses=[status])
