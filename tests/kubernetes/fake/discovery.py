"""What the server says it serves."""

from collections.abc import Callable
from typing import Any

from tests.kubernetes.fake.kinds import Catalogue, Kind

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.2",
    "gitCommit": "0" * 40,
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
SHORT = {
    "Namespace": "ns",
    "Node": "no",
    "Pod": "po",
    "Service": "svc",
    "ConfigMap": "cm",
    "Event": "ev",
    "PersistentVolumeClaim": "pvc",
    "Deployment": "deploy",
    "ReplicaSet": "rs",
    "StatefulSet": "sts",
    "InferencePool": "infpool",
    "LeaderWorkerSet": "lws",
}
OPENAPI = {
    "swagger": "2.0",
    "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
    "paths": {},
    "definitions": {},
}
REVIEWS = {
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    ("authorization.k8s.io", "v1", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
}


def resource_list(catalogue: Catalogue, group: str, version: str) -> dict[str, Any] | None:
    """The APIResourceList of one group and version; None when it is not served."""
    entries: list[dict[str, Any]] = []
    for kind in catalogue.installed():
        if kind.group == group and version in (kind.version, *kind.versions):
            entries.extend(_entries(kind))
    entries.extend(
        {"name": plural, "singularName": "", "namespaced": False, "kind": name, "verbs": ["create"]}
        for (g, v, plural), name in REVIEWS.items()
        if (g, v) == (group, version)
    )
    if not entries:
        return None
    shown = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": shown,
        "resources": entries,
    }


def _entries(kind: Kind) -> list[dict[str, Any]]:
    entry = {
        "name": kind.plural,
        "singularName": kind.name.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": VERBS,
    }
    if kind.name in SHORT:
        entry["shortNames"] = [SHORT[kind.name]]
    found = [entry]
    sub = {"singularName": "", "namespaced": kind.namespaced, "kind": kind.name}
    if kind.status:
        name = f"{kind.plural}/status"
        found.append(sub | {"name": name, "verbs": ["get", "patch", "update"]})
    if kind.scale:
        found.append(
            sub
            | {
                "name": f"{kind.plural}/scale",
                "group": "autoscaling",
                "version": "v1",
                "kind": "Scale",
                "verbs": ["get", "patch", "update"],
            }
        )
    if kind.name == "Pod":
        found.append(sub | {"name": "pods/log", "verbs": ["get"]})
        found.append(
            sub
            | {
                "name": "pods/eviction",
                "kind": "Eviction",
                "group": "policy",
                "version": "v1",
                "verbs": ["create"],
            }
        )
    return found


def group_list(catalogue: Catalogue) -> dict[str, Any]:
    """The APIGroupList of `/apis`."""
    found = {group: versions for group, versions in catalogue.groups().items() if group}
    for group, version, _ in REVIEWS:
        found.setdefault(group, [version])
    groups = []
    for group, versions in sorted(found.items()):
        listed = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
        groups.append({"name": group, "versions": listed, "preferredVersion": listed[0]})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def discovery(catalogue: Catalogue, path: str) -> Any:
    """The answer to a discovery path; None: the path is none."""
    path = path.rstrip("/")
    if path in _FIXED:
        return _FIXED[path](catalogue)
    match path.strip("/").split("/"):
        case ["api", "v1"]:
            return resource_list(catalogue, "", "v1")
        case ["apis", group]:
            groups = group_list(catalogue)["groups"]
            return next((entry for entry in groups if entry["name"] == group), None)
        case ["apis", group, version]:
            return resource_list(catalogue, group, version)
    return None


_FIXED: dict[str, Callable[[Catalogue], Any]] = {
    "/version": lambda _: VERSION,
    "/api": lambda _: {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    },
    "/apis": group_list,
    "/openapi/v2": lambda _: OPENAPI,
    "/openapi/v3": lambda _: {"paths": {}},
    "/healthz": lambda _: "ok",
    "/readyz": lambda _: "ok",
    "/livez": lambda _: "ok",
}
