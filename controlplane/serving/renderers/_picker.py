"""llm-d's endpoint picker: its configuration, and the objects that run it.

Ports, flags and rights: llm-d Router 0.10 (chart `llm-d-router-gateway`, August 2026). The
configuration lies in a ConfigMap whose name carries a hash of its content, so that a change is a
rollout with a way back. One replica: the picker's prefix index lives in its memory.
"""

import hashlib

from controlplane.serving.renderers._gateway import INFERENCE_GROUP, pool_name
from controlplane.serving.renderers.base import (
    Manifest,
    PoolLayout,
    RenderRefusedError,
    is_disaggregated,
)
from inventory.kubernetes import labels
from routing.core.document import DocumentError, Plugin, Policy, Profile
from routing.llmd.conversion import DEFAULT_SCORERS, convert_config
from routing.llmd.model import EndpointPickerConfig
from routing.llmd.reading import write
from routing.llmd.writing import config_of

COMPONENT = "consort.dev/component"
CONFIG_FILE = "picker.yaml"
EXT_PROC, HEALTH, METRICS = 9002, 9003, 9090
_PRODUCER = Plugin(type="approx-prefix-cache-producer")


def llmd_default(*, disaggregated: bool) -> Policy:
    """llm-d's own weights as a policy of ours.

    Sources: the picker's built-in configuration; for prefill and decode apart, the default
    scheduler of KServe's LLMInferenceService, which always has prefill done elsewhere.
    """
    if not disaggregated:
        scorers = [Plugin(type=name, weight=weight) for name, weight in DEFAULT_SCORERS]
        return Policy(
            name="weighted",
            plugins=(_PRODUCER,),
            profiles=(Profile(plugins=(*scorers, Plugin(type="max-score-picker"))),),
        )
    prefill = (
        Plugin(type="prefill-filter"),
        Plugin(type="prefix-cache-scorer", weight=3.0),
        Plugin(type="queue-scorer", weight=2.0),
        Plugin(type="kv-cache-utilization-scorer", weight=2.0),
        Plugin(type="max-score-picker"),
    )
    decode = (
        Plugin(type="decode-filter"),
        Plugin(type="active-request-scorer", weight=2.0),
        Plugin(type="prefix-cache-scorer", weight=3.0),
        Plugin(type="max-score-picker"),
    )
    handler = Plugin(
        type="disagg-profile-handler",
        parameters={"deciders": {"prefill": "always-disagg-pd-decider"}},
    )
    return Policy(
        name="weighted",
        plugins=(handler, Plugin(type="always-disagg-pd-decider"), _PRODUCER),
        profiles=(
            Profile(name="prefill", plugins=prefill),
            Profile(name="decode", plugins=decode),
        ),
    )


def picker_config(layout: PoolLayout) -> EndpointPickerConfig:
    """The pool's policy as llm-d's configuration.

    Raises RenderRefusedError for a policy or an admission that llm-d cannot run.
    """
    policy = layout.policy or llmd_default(disaggregated=is_disaggregated(layout.groups))
    try:
        config = config_of(policy, layout.admission)
        back = convert_config(config)
    except DocumentError as error:
        raise RenderRefusedError(
            "policy",
            f"{error.message} Ask for llm-d's own weights with the policy 'llm-d-default', or keep "
            "the pool's routers.",
        ) from error
    for name in layout.admission.__struct_fields__:
        if getattr(back.admission, name) != getattr(layout.admission, name):
            raise RenderRefusedError(
                f"admission.{name}",
                f"llm-d has no counterpart to admission.{name} of the pool. Leave it out, or keep "
                "the pool's routers.",
            )
    return config


def picker_name(layout: PoolLayout) -> str:
    """Name of the picker's Service and of what else runs it."""
    return labels.object_name(f"{layout.pool}-epp")


def picker_manifests(layout: PoolLayout) -> list[Manifest]:
    """Account, rights, configuration, Deployment and Service. Raises RenderRefusedError."""
    if not layout.picker_images.picker:
        raise RenderRefusedError(
            "picker_images.picker",
            "No image of llm-d's picker is set. Set containers.llmd.picker to an image with its "
            "tag or digest.",
        )
    name = picker_name(layout)
    config = _config_map(layout, name)
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(layout, name)},
        _role(layout, name),
        _role_binding(layout, name),
        config,
        _deployment(layout, name, config["metadata"]["name"]),
        _service(layout, name),
    ]


def with_hash(name: str, content: str) -> str:
    """A name that changes with the content."""
    digest = hashlib.sha256(content.encode()).hexdigest()[:10]
    return f"{labels.object_name(name, labels.MOST - 11)}-{digest}"


def _metadata(layout: PoolLayout, name: str) -> Manifest:
    return {
        "name": name,
        "namespace": layout.namespace,
        "labels": {**_selector(layout), labels.MANAGED_BY: labels.MANAGER},
    }


def _selector(layout: PoolLayout) -> dict[str, str]:
    """Not the label of the pool, which would make the picker one of its engines."""
    return {COMPONENT: "picker", "consort.dev/picks-for": labels.label_value(layout.pool)}


def _config_map(layout: PoolLayout, name: str) -> Manifest:
    text = write(picker_config(layout))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(layout, with_hash(f"{name}-config", text)),
        "immutable": True,
        "data": {CONFIG_FILE: text},
    }


def _role(layout: PoolLayout, name: str) -> Manifest:
    read = ["get", "list", "watch"]
    objectives = ["inferenceobjectives", "inferencemodelrewrites"]
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": read},
        {"apiGroups": [INFERENCE_GROUP], "resources": ["inferencepools"], "verbs": read},
        {"apiGroups": ["llm-d.ai"], "resources": objectives, "verbs": read},
        {
            "apiGroups": ["inference.networking.x-k8s.io"],
            "resources": objectives,
            "verbs": read,
        },
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": _metadata(layout, name),
        "rules": rules,
    }


def _role_binding(layout: PoolLayout, name: str) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(layout, name),
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": layout.namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
    }


def _deployment(layout: PoolLayout, name: str, config: str) -> Manifest:
    pod: Manifest = {
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": 130,
        "containers": [_container(layout)],
        "volumes": [{"name": "config", "configMap": {"name": config}}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    secrets = layout.groups[0].image_pull_secrets if layout.groups else ()
    if secrets:
        pod["imagePullSecrets"] = [{"name": secret} for secret in secrets]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(layout, name),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": _selector(layout)},
            "template": {"metadata": {"labels": _metadata(layout, name)["labels"]}, "spec": pod},
        },
    }


def _container(layout: PoolLayout) -> Manifest:
    flags = [
        f"--pool-name={pool_name(layout)}",
        f"--pool-namespace={layout.namespace}",
        f"--pool-group={INFERENCE_GROUP}",
        f"--config-file=/config/{CONFIG_FILE}",
        f"--grpc-health-port={HEALTH}",
        # Who may read the metrics would be asked of the API server, which needs cluster rights.
        "--metrics-endpoint-auth=false",
        "--tracing=false",
    ]
    probe = {"grpc": {"port": HEALTH, "service": "inference-extension"}, "periodSeconds": 5}
    fields = {"NAMESPACE": "metadata.namespace", "POD_NAME": "metadata.name"}
    return {
        "name": "epp",
        "image": layout.picker_images.picker,
        "args": flags,
        "env": [
            {"name": key, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
            for key, path in fields.items()
        ],
        "ports": [
            {"name": "grpc", "containerPort": EXT_PROC, "protocol": "TCP"},
            {"name": "grpc-health", "containerPort": HEALTH, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS, "protocol": "TCP"},
        ],
        "readinessProbe": probe,
        "livenessProbe": probe | {"periodSeconds": 10, "initialDelaySeconds": 5},
        # The chart's own figures.
        "resources": {"requests": {"cpu": "8", "memory": "8Gi"}, "limits": {"memory": "16Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/config", "readOnly": True}],
    }


def _service(layout: PoolLayout, name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(layout, name),
        "spec": {
            "selector": _selector(layout),
            "ports": [
                {
                    "name": "grpc-ext-proc",
                    "port": EXT_PROC,
                    "protocol": "TCP",
                    "appProtocol": "kubernetes.io/h2c",
                },
                {"name": "http-metrics", "port": METRICS, "protocol": "TCP"},
            ],
        },
    }
