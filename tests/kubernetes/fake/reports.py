"""Controllers that only report: EndpointSlices, disruption budgets, volumes."""

import uuid

from tests.kubernetes.fake.admission import FINISHED, POD, QUOTA, counted
from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.nodes import is_ready
from tests.kubernetes.fake.owners import owner_reference
from tests.kubernetes.fake.selectors import by_selector
from tests.kubernetes.fake.store import Object

SERVICE, SLICE = kind_of("v1", "Service"), kind_of("discovery.k8s.io/v1", "EndpointSlice")
BUDGET, CLAIM = kind_of("policy/v1", "PodDisruptionBudget"), kind_of("v1", "PersistentVolumeClaim")
OF = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"


def run_slices(api: Api) -> None:
    """One EndpointSlice per Service with a selector, with the readiness of its Pods."""
    slices = {
        (item["metadata"]["namespace"], item["metadata"].get("labels", {}).get(OF)): item
        for item in api.store.all(SLICE)
    }
    for service in api.store.all(SERVICE):
        spec, meta = service.get("spec") or {}, service["metadata"]
        if not spec.get("selector") or meta.get("deletionTimestamp"):
            continue
        match = by_selector({"matchLabels": spec["selector"]})
        pods = [p for p in api.store.all(POD, meta["namespace"]) if match(p)]
        pods = [pod for pod in pods if pod["status"].get("podIP")]
        _write(api, service, slices.get((meta["namespace"], meta["name"])), pods)


def _write(api: Api, service: Object, there: Object | None, pods: list[Object]) -> None:
    meta = service["metadata"]
    wish = {
        "addressType": "IPv4",
        "endpoints": [_endpoint(pod) for pod in pods],
        "ports": [_port(port, pods) for port in service["spec"].get("ports") or []],
    }
    if there is None:
        labels = (meta.get("labels") or {}) | {OF: meta["name"]}
        labels[MANAGED_BY] = "endpointslice-controller.k8s.io"
        body = wish | {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{meta['name']}-{uuid.uuid4().hex[:5]}",
                "labels": labels,
                "ownerReferences": [owner_reference(service)],
            },
        }
        api.create(SLICE, meta["namespace"], body)
    elif any(there.get(key) != value for key, value in wish.items()):
        api.replace(SLICE, meta["namespace"], there["metadata"]["name"], there | wish)


def _endpoint(pod: Object) -> Object:
    meta, ending = pod["metadata"], bool(pod["metadata"].get("deletionTimestamp"))
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": is_ready(pod) and not ending,
            "serving": is_ready(pod),
            "terminating": ending,
        },
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {
            "kind": "Pod",
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
        },
    }


def _port(port: Object, pods: list[Object]) -> Object:
    target = port.get("targetPort", port["port"])
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for entry in container.get("ports") or []:
                if entry.get("name") == target:
                    target = entry["containerPort"]
    number = {"port": target} if isinstance(target, int) else {}
    return {"name": port.get("name", ""), "protocol": port.get("protocol", "TCP")} | number


def run_budgets(api: Api) -> None:
    """How many Pods of each disruption budget may be evicted now."""
    for budget in api.store.all(BUDGET):
        spec = budget["spec"]
        match = by_selector(spec.get("selector"))
        pods = [p for p in api.store.all(POD, budget["metadata"]["namespace"]) if match(p)]
        healthy = sum(is_ready(pod) for pod in pods)
        least = (
            _share(spec["minAvailable"], len(pods))
            if "minAvailable" in spec
            else (len(pods) - _share(spec.get("maxUnavailable", 1), len(pods)))
        )
        status = {
            "currentHealthy": healthy,
            "desiredHealthy": least,
            "expectedPods": len(pods),
            "disruptionsAllowed": max(0, healthy - least),
            "observedGeneration": budget["metadata"]["generation"],
        }
        api.set_status(BUDGET, budget, status)


def _share(value: int | str, whole: int) -> int:
    return value if isinstance(value, int) else -(-whole * int(value.rstrip("%")) // 100)


def run_volumes(api: Api) -> None:
    """Every volume claim finds a volume."""
    for claim in api.store.all(CLAIM):
        if claim["status"].get("phase") == "Pending":
            status = {
                "phase": "Bound",
                "accessModes": claim["spec"]["accessModes"],
                "capacity": claim["spec"]["resources"]["requests"],
            }
            api.set_status(CLAIM, claim, status)


def run_quotas(api: Api) -> None:
    """Every quota says what it limits and how much of it is used."""
    for quota in api.store.all(QUOTA):
        hard = (quota.get("spec") or {}).get("hard") or {}
        pods = [
            pod
            for pod in api.store.all(POD, quota["metadata"]["namespace"])
            if pod["status"].get("phase") not in FINISHED
        ]
        used = {key: str(sum(counted(pod, key) for pod in pods)) for key in hard}
        api.set_status(QUOTA, quota, {"hard": hard, "used": used})
