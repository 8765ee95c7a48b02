"""Rules and defaults of the built-in kinds beyond the Pod template."""

import base64
import binascii
import itertools
import re
from collections.abc import Callable
from typing import Any

from tests.kubernetes.fake.errors import cause
from tests.kubernetes.fake.kinds import Kind
from tests.kubernetes.fake.pods import (
    LABEL,
    MOST,
    label_causes,
    pod_causes,
    port_causes,
    with_pod_defaults,
)

Object = dict[str, Any]
Causes = list[dict[str, str]]

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
DATA_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
LONGEST_NAME, MOST_DATA = 253, 1_048_576
WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
_addresses = itertools.count(1)


def meta_causes(kind: Kind, meta: Object) -> Causes:
    """Names, labels and annotations."""
    name, found = meta.get("name", ""), []
    if kind.name == "Service":
        good, rule = len(name) <= MOST and DNS_1035.fullmatch(name), "DNS-1035 label"
    elif kind.name == "Namespace":
        good, rule = len(name) <= MOST and LABEL.fullmatch(name), "lowercase RFC 1123 label"
    else:
        good = len(name) <= LONGEST_NAME and SUBDOMAIN.fullmatch(name)
        rule = "lowercase RFC 1123 subdomain"
    if kind.name not in {"Role", "RoleBinding"} and not good:
        found.append(
            cause(
                "metadata.name",
                f'Invalid value: "{name}": a {rule} must consist of '
                "lower case alphanumeric characters, '-' or '.', and "
                "must start and end with an alphanumeric character",
            )
        )
    found += label_causes(meta.get("labels"), "metadata.labels")
    keys = dict.fromkeys(meta.get("annotations") or {}, "")
    return found + label_causes({key.lower(): "" for key in keys}, "metadata.annotations")


def spec_causes(kind: Kind, item: Object, before: Object | None) -> Causes:
    """What is wrong with an object of a built-in kind; `before` is what it was."""
    if kind.name in WORKLOADS:
        return _workload(kind, item, before)
    rule = _RULES.get(kind.name)
    return rule(item, before) if rule else []


def _workload(kind: Kind, item: Object, before: Object | None) -> Causes:
    spec, template = item["spec"], item["spec"].get("template") or {}
    found = pod_causes(template.get("spec") or {}, "spec.template.spec")
    labels = (template.get("metadata") or {}).get("labels") or {}
    found += label_causes(labels, "spec.template.labels")
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    if not spec.get("selector") or (not wanted and not spec["selector"].get("matchExpressions")):
        found.append(
            cause(
                "spec.selector", f"Invalid value: empty selector is invalid for {kind.name.lower()}"
            )
        )
    if any(labels.get(key) != value for key, value in wanted.items()):
        found.append(
            cause(
                "spec.template.metadata.labels",
                f"Invalid value: {labels}: `selector` does not match template `labels`",
            )
        )
    if before and before["spec"].get("selector") != spec.get("selector"):
        found.append(cause("spec.selector", "Invalid value: field is immutable"))
    if (spec.get("replicas") or 0) < 0:
        found.append(
            cause(
                "spec.replicas",
                f"Invalid value: {spec['replicas']}: must be greater than or equal to 0",
            )
        )
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate"):
        found.append(
            cause(
                "spec.strategy.rollingUpdate",
                "Forbidden: may not be specified when strategy `type` is 'Recreate'",
                "FieldValueForbidden",
            )
        )
    if (template.get("spec") or {}).get("restartPolicy", "Always") != "Always":
        found.append(
            cause(
                "spec.template.spec.restartPolicy",
                'Unsupported value: supported values: "Always"',
                "FieldValueNotSupported",
            )
        )
    return found


def _pod(item: Object, before: Object | None) -> Causes:
    if before and _frozen(before["spec"]) != _frozen(item["spec"]):
        return [
            cause(
                "spec",
                "Forbidden: pod updates may not change fields other than image, "
                "activeDeadlineSeconds, tolerations",
                "FieldValueForbidden",
            )
        ]
    return pod_causes(item["spec"], "spec")


def _frozen(spec: Object) -> Object:
    free = {"tolerations", "nodeName", "activeDeadlineSeconds", "containers"}
    kept = {key: value for key, value in spec.items() if key not in free}
    images = [{k: v for k, v in c.items() if k != "image"} for c in spec["containers"]]
    return kept | {"containers": images}


def _job(item: Object, before: Object | None) -> Causes:
    spec = item["spec"]["template"].get("spec") or {}
    found = pod_causes(spec, "spec.template.spec")
    if spec.get("restartPolicy", "Always") == "Always":
        found.append(
            cause(
                "spec.template.spec.restartPolicy",
                'Required value: valid values: "OnFailure", "Never"',
                "FieldValueRequired",
            )
        )
    if before and before["spec"]["template"].get("spec") != item["spec"]["template"].get("spec"):
        found.append(cause("spec.template", "Invalid value: field is immutable"))
    return found


def _service(item: Object, before: Object | None) -> Causes:
    spec, found = item.get("spec") or {}, []
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        found.append(cause("spec.ports", "Required value", "FieldValueRequired"))
    for number, port in enumerate(ports):
        found += port_causes(port.get("port"), f"spec.ports[{number}].port")
        if len(ports) > 1 and not port.get("name"):
            found.append(
                cause(f"spec.ports[{number}].name", "Required value", "FieldValueRequired")
            )
    kept = before and (before.get("spec") or {}).get("clusterIP")
    if kept and spec.get("clusterIP") != kept:
        found.append(cause("spec.clusterIPs[0]", "Invalid value: may not change once set"))
    return found


def _data(item: Object, before: Object | None) -> Causes:
    found = [
        cause(
            f"data[{key}]",
            f'Invalid value: "{key}": a valid config key must consist of '
            "alphanumeric characters, '-', '_' or '.'",
        )
        for key in item.get("data") or {}
        if not DATA_KEY.fullmatch(key)
    ]
    if sum(len(value) for value in (item.get("data") or {}).values()) > MOST_DATA:
        found.append(
            cause("data", "Too long: may not be more than 1048576 bytes", "FieldValueTooLong")
        )
    if before and before.get("immutable") and before.get("data") != item.get("data"):
        found.append(
            cause(
                "data",
                "Forbidden: field is immutable when `immutable` is set",
                "FieldValueForbidden",
            )
        )
    return found


def _secret(item: Object, before: Object | None) -> Causes:
    found = _data(item, before)
    for key, value in (item.get("data") or {}).items():
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            found.append(cause(f"data[{key}]", "Invalid value: illegal base64 data"))
    return found


def _claim(item: Object, before: Object | None) -> Causes:
    spec, found = item["spec"], []
    if not spec.get("accessModes"):
        found.append(
            cause(
                "spec.accessModes",
                "Required value: at least 1 access mode is required",
                "FieldValueRequired",
            )
        )
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        found.append(cause("spec.resources[storage]", "Required value", "FieldValueRequired"))
    return found


def _disruption(item: Object, before: Object | None) -> Causes:
    spec = item.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        return [cause("spec", "Invalid value: minAvailable and maxUnavailable cannot be both set")]
    return []


_RULES: dict[str, Callable[[Object, Object | None], Causes]] = {
    "Pod": _pod,
    "Job": _job,
    "Service": _service,
    "ConfigMap": _data,
    "Secret": _secret,
    "PersistentVolumeClaim": _claim,
    "PodDisruptionBudget": _disruption,
}


def with_defaults(kind: Kind, item: Object, before: Object | None) -> Object:
    """The object as the API server completes it."""
    complete = _DEFAULTS.get(kind.name)
    return complete(item, before) if complete else item


def _template(template: Object) -> Object:
    return template | {"spec": with_pod_defaults(template.get("spec") or {})}


def _deployment_defaults(item: Object, before: Object | None) -> Object:
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
    spec = item["spec"]
    strategy = {"type": "RollingUpdate"} | (spec.get("strategy") or {})
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = rolling | (strategy.get("rollingUpdate") or {})
    fixed = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
    return item | {
        "spec": fixed | spec | {"strategy": strategy, "template": _template(spec["template"])}
    }


def _workload_defaults(item: Object, before: Object | None) -> Object:
    spec = {"replicas": 1} | item["spec"]
    return item | {"spec": spec | {"template": _template(spec["template"])}}


def _job_defaults(item: Object, before: Object | None) -> Object:
    spec = {"parallelism": 1, "completions": 1, "backoffLimit": 6} | item["spec"]
    return item | {"spec": spec | {"template": _template(spec["template"])}}


def _pod_defaults(item: Object, before: Object | None) -> Object:
    spec = {"serviceAccountName": "default", "enableServiceLinks": True, "priority": 0}
    return item | {"spec": spec | with_pod_defaults(item["spec"])}


def _service_defaults(item: Object, before: Object | None) -> Object:
    spec = {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    } | (item.get("spec") or {})
    spec["ports"] = [
        {"protocol": "TCP", "targetPort": port.get("port")} | port
        for port in spec.get("ports") or []
    ]
    if "clusterIP" not in spec and spec["type"] != "ExternalName":
        number = next(_addresses)
        old = (before or {}).get("spec", {}).get("clusterIP")
        spec["clusterIP"] = old or f"10.96.{number // 250 % 250}.{number % 250 + 1}"
    if spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    return item | {"spec": spec}


def _secret_defaults(item: Object, before: Object | None) -> Object:
    item = {"type": "Opaque"} | item
    text = item.pop("stringData", None) or {}
    if text:
        coded = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
        item["data"] = (item.get("data") or {}) | coded
    return item


def _claim_defaults(item: Object, before: Object | None) -> Object:
    return item | {"spec": {"volumeMode": "Filesystem"} | item["spec"]}


_DEFAULTS: dict[str, Callable[[Object, Object | None], Object]] = {
    "Deployment": _deployment_defaults,
    "ReplicaSet": _workload_defaults,
    "StatefulSet": _workload_defaults,
    "Job": _job_defaults,
    "Pod": _pod_defaults,
    "Service": _service_defaults,
    "Secret": _secret_defaults,
    "PersistentVolumeClaim": _claim_defaults,
}
