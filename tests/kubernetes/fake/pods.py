"""Rules and defaults of the Pod template, which Pods and all workloads share."""

import re
from typing import Any

from tests.kubernetes.fake.errors import cause
from tests.kubernetes.fake.quantities import amount, is_extended

Object = dict[str, Any]
Causes = list[dict[str, str]]

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
QUALIFIED = re.compile(
    r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
ENV_NAME = re.compile(r"[ -<>-~]+")
PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
MOST = 63


def label_causes(labels: Object | None, path: str) -> Causes:
    """Keys are qualified names, values are short words."""
    found = []
    for key, value in (labels or {}).items():
        if not QUALIFIED.fullmatch(key):
            found.append(cause(path, f'Invalid value: "{key}": name part must be a qualified name'))
        if len(value) > MOST or not VALUE.fullmatch(value):
            found.append(
                cause(
                    path,
                    f'Invalid value: "{value}": a valid label must be an empty '
                    "string or consist of alphanumeric characters, '-', '_' or "
                    "'.', at most 63 characters",
                )
            )
    return found


def pod_causes(spec: Object, path: str) -> Causes:
    """What is wrong with a Pod's spec."""
    found: Causes = []
    containers = spec.get("containers") or []
    if not containers:
        found.append(cause(f"{path}.containers", "Required value", "FieldValueRequired"))
    volumes = {volume.get("name") for volume in spec.get("volumes") or []}
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or []}
    for group in ("initContainers", "containers"):
        seen: set[str] = set()
        for number, container in enumerate(spec.get(group) or []):
            where = f"{path}.{group}[{number}]"
            found += _container(container, where)
            found += _references(container, where, volumes, claims)
            if container["name"] in seen:
                found.append(_duplicate(f"{where}.name", container["name"]))
            seen.add(container["name"])
    found += label_causes(spec.get("nodeSelector"), f"{path}.nodeSelector")
    for number, toleration in enumerate(spec.get("tolerations") or []):
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            found.append(
                cause(
                    f"{path}.tolerations[{number}].operator",
                    "Invalid value: value must be empty when `operator` is 'Exists'",
                )
            )
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        found.append(_negative(f"{path}.terminationGracePeriodSeconds", grace))
    return found


def _container(container: Object, path: str) -> Causes:
    found = []
    name = container["name"]
    if len(name) > MOST or not LABEL.fullmatch(name):
        found.append(
            cause(
                f"{path}.name",
                f'Invalid value: "{name}": a lowercase RFC 1123 label '
                "must consist of lower case alphanumeric characters "
                "or '-'",
            )
        )
    if not container.get("image"):
        found.append(cause(f"{path}.image", "Required value", "FieldValueRequired"))
    for number, port in enumerate(container.get("ports") or []):
        where = f"{path}.ports[{number}]"
        found += port_causes(port.get("containerPort"), f"{where}.containerPort")
        if port.get("name") and not PORT_NAME.fullmatch(port["name"]):
            found.append(
                cause(
                    f"{where}.name",
                    f'Invalid value: "{port["name"]}": must be no more '
                    "than 15 characters, lower case letters, numbers and '-'",
                )
            )
    for number, env in enumerate(container.get("env") or []):
        if not ENV_NAME.fullmatch(env["name"]):
            found.append(cause(f"{path}.env[{number}].name", f'Invalid value: "{env["name"]}"'))
        if env.get("value") and env.get("valueFrom"):
            found.append(
                cause(
                    f"{path}.env[{number}].valueFrom",
                    "Invalid value: may not be specified when `value` is not empty",
                )
            )
    return found + _resources(container.get("resources") or {}, f"{path}.resources")


def _references(container: Object, path: str, volumes: set[Any], claims: set[Any]) -> Causes:
    found = []
    for number, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            found.append(
                cause(
                    f"{path}.volumeMounts[{number}].name",
                    f'Not found: "{mount.get("name")}"',
                    "FieldValueNotFound",
                )
            )
    for number, claim in enumerate((container.get("resources") or {}).get("claims") or []):
        if claim.get("name") not in claims:
            found.append(
                cause(
                    f"{path}.resources.claims[{number}]",
                    f'Not found: "{claim.get("name")}"',
                    "FieldValueNotFound",
                )
            )
    return found


def _resources(resources: Object, path: str) -> Causes:
    found: Causes = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            found += _amount(name, value, f"{path}.{group}[{name}]")
    for name, value in requests.items():
        asked, most = amount(value), amount(limits.get(name))
        shown = f'Invalid value: "{value}": must be'
        if asked is not None and is_extended(name) and asked != most:
            said = f"{shown} equal to {name} limit of {limits.get(name)}"
            found.append(cause(f"{path}.requests", said))
        elif asked is not None and most is not None and asked > most:
            said = f"{shown} less than or equal to {name} limit of {limits.get(name)}"
            found.append(cause(f"{path}.requests", said))
    return found


def _amount(name: str, value: object, path: str) -> Causes:
    number = amount(value)
    if number is None or number < 0:
        said = "quantities must match the regular expression of amounts"
        return [cause(path, f'Invalid value: "{value}": {said}')]
    if is_extended(name) and number != int(number):
        return [cause(path, f'Invalid value: "{value}": must be an integer')]
    return []


def port_causes(port: object, path: str) -> Causes:
    """A port is 1 to 65535."""
    if isinstance(port, int) and 0 < port < 65536:
        return []
    return [cause(path, f"Invalid value: {port}: must be between 1 and 65535, inclusive")]


def _duplicate(path: str, value: str) -> dict[str, str]:
    return cause(path, f'Duplicate value: "{value}"', "FieldValueDuplicate")


def _negative(path: str, value: object) -> dict[str, str]:
    return cause(path, f"Invalid value: {value}: must be greater than or equal to 0")


def with_pod_defaults(spec: Object) -> Object:
    """A Pod's spec as the API server completes it."""
    filled = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    } | {key: value for key, value in spec.items() if value is not None}
    for group in ("initContainers", "containers"):
        if spec.get(group):
            filled[group] = [_with_container_defaults(container) for container in spec[group]]
    return filled


def _with_container_defaults(container: Object) -> Object:
    image = container.get("image", "")
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    filled = {
        "imagePullPolicy": "Always" if latest and "@" not in image else "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {},
    } | {key: value for key, value in container.items() if value is not None}
    if filled.get("ports"):
        filled["ports"] = [{"protocol": "TCP"} | port for port in filled["ports"]]
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        if filled.get(probe):
            filled[probe] = _with_probe_defaults(filled[probe])
    resources = filled["resources"]
    if missing := {
        name: value
        for name, value in (resources.get("limits") or {}).items()
        if name not in (resources.get("requests") or {})
    }:
        filled["resources"] = resources | {"requests": missing | (resources.get("requests") or {})}
    return filled


def _with_probe_defaults(probe: Object) -> Object:
    filled = {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    } | probe
    if filled.get("httpGet"):
        filled["httpGet"] = {"scheme": "HTTP", "path": "/"} | filled["httpGet"]
    return filled
