"""The Pod of an engine: what runs, on which devices, from which files, and how it ends.

Probes ask `GET /health`. There is no liveness probe: a busy engine answers late, and a restart
costs all of its cache. The start-up probe gives the weights time to load. Before the signal to end
the Pod waits, so that routers see it leave first; then it has the longest answer's time to finish.
"""

import hashlib
import json

from controlplane.serving.renderers import _labels
from controlplane.serving.renderers.base import (
    ENGINE_CONTAINER,
    POD_FIELDS,
    DeviceClaim,
    EngineGroup,
    ExtendedResource,
    Manifest,
    RenderRefusedError,
    Toleration,
    cpu_quantity,
    mebibyte_quantity,
)
from inventory.kubernetes import labels

HOSTNAME_LABEL = "kubernetes.io/hostname"
CLAIM = "accelerators"
SHARED_MEMORY = "/dev/shm"  # noqa: S108  # a mount of the engine's own, not this machine's folder
PROBE_SECONDS = 10
END_SECONDS = 30
"""Time for an engine to close after its last answer."""


def pod_template(group: EngineGroup) -> Manifest:
    """Template of the Pods that answer requests."""
    return {"metadata": {"labels": _labels.engine_labels(group)}, "spec": pod_spec(group)}


def further_template(group: EngineGroup) -> Manifest:
    """Template of an engine's Pods on further nodes."""
    return {
        "metadata": {"labels": _labels.further_labels(group)},
        "spec": pod_spec(group, argv=group.worker_argv or group.argv),
    }


def pod_spec(group: EngineGroup, *, argv: tuple[str, ...] | None = None) -> Manifest:
    """What one Pod of the group is. Raises RenderRefusedError."""
    spec: Manifest = {
        "containers": [container(group, argv=argv)],
        "automountServiceAccountToken": False,
        # Variables such as VLLM_PORT, made for a Service of that name, would be read as settings.
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "terminationGracePeriodSeconds": (
            group.drain_seconds + group.max_answer_seconds + END_SECONDS
        ),
        "volumes": volumes(group),
    }
    optional = {
        **_placement(group.hostnames),
        "tolerations": [_toleration(taint) for taint in group.tolerations],
        "runtimeClassName": group.runtime_class,
        "serviceAccountName": group.service_account,
        "imagePullSecrets": [{"name": name} for name in group.image_pull_secrets],
        "resourceClaims": _resource_claims(group),
    }
    return spec | {key: value for key, value in optional.items() if value}


def container(
    group: EngineGroup, *, argv: tuple[str, ...] | None = None, name: str = ENGINE_CONTAINER
) -> Manifest:
    """The engine's container; a command of its own is a further node's, which answers nobody."""
    shown: Manifest = {
        "name": name,
        "image": group.image,
        "env": environment(group),
        "resources": _resources(group),
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": _mounts(group),
    }
    command = group.argv if argv is None else argv
    if command:
        shown["command"] = list(command)
    if argv is not None:
        return shown
    return shown | {
        "ports": _ports(group),
        "startupProbe": _probe(group.start_seconds),
        "readinessProbe": _probe(3 * PROBE_SECONDS),
        "lifecycle": {"preStop": {"sleep": {"seconds": group.drain_seconds}}},
    }


def environment(group: EngineGroup) -> list[Manifest]:
    """Fields of the Pod first, since later values may name them; then plain values, then secrets.

    Raises RenderRefusedError for a variable that is given twice.
    """
    names = [*POD_FIELDS, *group.env, *(secret.variable for secret in group.secrets)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RenderRefusedError("env", f"These variables are given twice: {', '.join(twice)}.")
    plain = [_variable(name, group.env[name]) for name in sorted(group.env)]
    secret = [
        {
            "name": reference.variable,
            "valueFrom": {"secretKeyRef": {"name": reference.secret, "key": reference.key}},
        }
        for reference in group.secrets
    ]
    fields = [_field(name, path) for name, path in POD_FIELDS.items()]
    return [*fields, *plain, *secret]


def volumes(group: EngineGroup) -> list[Manifest]:
    """Shared memory, and the model's files when they come from a volume."""
    found: list[Manifest] = []
    if group.shm_mib is not None:
        size = mebibyte_quantity(group.shm_mib)
        found.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}})
    if group.artefact is not None:
        source = group.artefact.source
        kinds: dict[str, Manifest] = {
            "pvc": {"persistentVolumeClaim": {"claimName": source, "readOnly": True}},
            "node-path": {"hostPath": {"path": source, "type": "Directory"}},
            "oci": {"image": {"reference": source, "pullPolicy": "IfNotPresent"}},
        }
        found.append({"name": "model", **kinds[group.artefact.kind]})
    return found


def claim_template(group: EngineGroup) -> Manifest | None:
    """Template of the claim of each Pod, when devices are claimed and not counted.

    The API server lets nobody change its spec, so its name carries a hash of it: another claim is
    another template, and the Pods that still run keep theirs.
    """
    if not isinstance(group.devices, DeviceClaim):
        return None
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": _labels.metadata(group, name=_claim_name(group, group.devices)),
        "spec": {
            "spec": {"devices": {"requests": [{"name": CLAIM, "exactly": _exactly(group.devices)}]}}
        },
    }


def _exactly(claim: DeviceClaim) -> Manifest:
    found: Manifest = {
        "deviceClassName": claim.device_class,
        "allocationMode": "ExactCount",
        "count": claim.count,
    }
    if claim.conditions:
        found["selectors"] = [{"cel": {"expression": condition}} for condition in claim.conditions]
    return found


def _claim_name(group: EngineGroup, claim: DeviceClaim) -> str:
    digest = hashlib.sha256(json.dumps(_exactly(claim), sort_keys=True).encode()).hexdigest()
    return f"{labels.object_name(group.name, labels.MOST - 9)}-{digest[:8]}"


def _resource_claims(group: EngineGroup) -> list[Manifest]:
    if not isinstance(group.devices, DeviceClaim):
        return []
    return [{"name": CLAIM, "resourceClaimTemplateName": _claim_name(group, group.devices)}]


def _resources(group: EngineGroup) -> Manifest:
    """Devices as a limit (the server asks for as many); processors and memory as requests."""
    limits: Manifest = {}
    requests: Manifest = {}
    if isinstance(group.devices, ExtendedResource):
        limits[group.devices.name] = str(group.devices.count)
    if group.cpu_millis is not None:
        requests["cpu"] = cpu_quantity(group.cpu_millis)
    if group.memory_mib is not None:
        requests["memory"] = mebibyte_quantity(group.memory_mib)
    claims = [{"name": CLAIM}] if isinstance(group.devices, DeviceClaim) else []
    found = {"limits": limits, "requests": requests, "claims": claims}
    return {key: value for key, value in found.items() if value}


def _ports(group: EngineGroup) -> list[Manifest]:
    ports = group.ports
    named = {
        "http": ports.http,
        "kv-events": ports.kv_events,
        "kv-replay": ports.kv_replay,
        "side-channel": ports.side_channel,
    }
    return [
        {"name": name, "containerPort": port, "protocol": "TCP"}
        for name, port in named.items()
        if port is not None
    ]


def _probe(seconds: int) -> Manifest:
    return {
        "httpGet": {"path": "/health", "port": "http"},
        "periodSeconds": PROBE_SECONDS,
        "timeoutSeconds": 5,
        "failureThreshold": max(1, -(-seconds // PROBE_SECONDS)),
    }


def _mounts(group: EngineGroup) -> list[Manifest]:
    found: list[Manifest] = []
    if group.shm_mib is not None:
        found.append({"name": "shm", "mountPath": SHARED_MEMORY})
    if group.artefact is not None:
        mount = {"name": "model", "mountPath": group.artefact.mount_path, "readOnly": True}
        sub_path = group.artefact.sub_path
        found.append(mount | ({"subPath": sub_path} if sub_path else {}))
    return found


def _placement(hostnames: tuple[str, ...]) -> Manifest:
    """One host name is a selector; several are a choice among them."""
    if len(hostnames) == 1:
        return {"nodeSelector": {HOSTNAME_LABEL: hostnames[0]}}
    if not hostnames:
        return {}
    condition = {"key": HOSTNAME_LABEL, "operator": "In", "values": sorted(hostnames)}
    terms = [{"matchExpressions": [condition]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def _toleration(taint: Toleration) -> Manifest:
    found = {
        "key": taint.key,
        "operator": taint.operator,
        "value": taint.value,
        "effect": taint.effect,
    }
    return {key: value for key, value in found.items() if value}


def _variable(name: str, value: str) -> Manifest:
    """A value that is one field of the Pod and nothing else is written as that field."""
    path = POD_FIELDS.get(value[2:-1]) if value.startswith("$(") and value.endswith(")") else None
    return _field(name, path) if path else {"name": name, "value": value}


def _field(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
