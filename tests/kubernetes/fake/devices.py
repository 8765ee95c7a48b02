"""Devices by claim (DRA): which devices of which node a ResourceClaim gets."""

import re
import uuid
from collections.abc import Iterator

from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.owners import owner_reference
from tests.kubernetes.fake.quantities import amount
from tests.kubernetes.fake.store import Object

SLICE = kind_of("resource.k8s.io/v1", "ResourceSlice")
CLASS = kind_of("resource.k8s.io/v1", "DeviceClass")
CLAIM = kind_of("resource.k8s.io/v1", "ResourceClaim")
TEMPLATE = kind_of("resource.k8s.io/v1", "ResourceClaimTemplate")

_DRIVER = re.compile(r"device\.driver\s*==\s*'([^']+)'")
_MEMORY = re.compile(
    r"device\.capacity\['[^']+'\]\.(?P<name>\w+)\.compareTo\(quantity\('(?P<amount>[^']+)'\)\)"
    r"\s*>=\s*0"
)
_ATTRIBUTE = re.compile(r"device\.attributes\['[^']+'\]\.(?P<name>\w+)\s*==\s*'(?P<value>[^']+)'")


def claims_of(api: Api, pod: Object) -> list[Object] | None:
    """The claims of a Pod, made from their templates; None while a template is missing."""
    space, found = pod["metadata"]["namespace"], []
    for entry in pod["spec"].get("resourceClaims") or []:
        if name := entry.get("resourceClaimName"):
            claim = api.store.get(CLAIM, space, name)
        else:
            claim = _made(api, pod, entry)
        if claim is None:
            return None
        found.append(claim)
    return found


def _made(api: Api, pod: Object, entry: Object) -> Object | None:
    meta = pod["metadata"]
    for claim in api.store.all(CLAIM, meta["namespace"]):
        owner = (claim["metadata"].get("ownerReferences") or [{}])[0]
        notes = claim["metadata"].get("annotations") or {}
        same = notes.get("resource.kubernetes.io/pod-claim-name") == entry["name"]
        if owner.get("uid") == meta["uid"] and same:
            return claim
    template = api.store.get(TEMPLATE, meta["namespace"], entry["resourceClaimTemplateName"])
    if template is None:
        return None
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"{meta['name']}-{entry['name']}-{uuid.uuid4().hex[:5]}",
            "annotations": {"resource.kubernetes.io/pod-claim-name": entry["name"]},
            "ownerReferences": [owner_reference(pod)],
        },
        "spec": template["spec"]["spec"],
    }
    return api.create(CLAIM, meta["namespace"], body)


def taken(api: Api) -> set[tuple[str, str, str]]:
    """Devices that claims hold: driver, pool, device."""
    return {
        (result["driver"], result["pool"], result["device"])
        for claim in api.store.all(CLAIM)
        for result in _results(claim)
    }


def _results(claim: Object) -> list[Object]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or [])


def choose(api: Api, claims: list[Object], node: str) -> list[list[Object]] | None:
    """Free devices of a node for each claim, in the form of results; None: they do not suffice."""
    used = taken(api)
    chosen = []
    for claim in claims:
        if _results(claim):
            chosen.append(_results(claim))
            continue
        results: list[Object] = []
        for request in claim["spec"]["devices"]["requests"]:
            picked = _pick(api, request, node, used)
            if picked is None:
                return None
            results += picked
        chosen.append(results)
    return chosen


def _pick(
    api: Api, request: Object, node: str, used: set[tuple[str, str, str]]
) -> list[Object] | None:
    exactly = request["exactly"]
    kind = api.store.get(CLASS, "", exactly["deviceClassName"])
    if kind is None:
        return None
    wanted = [*(kind["spec"].get("selectors") or []), *(exactly.get("selectors") or [])]
    expressions = [entry["cel"]["expression"] for entry in wanted]
    found: list[Object] = []
    for driver, pool, device in _devices(api, node):
        key = (driver, pool, device["name"])
        if key not in used and all(_holds(text, driver, device) for text in expressions):
            used.add(key)
            found.append(
                {"request": request["name"], "driver": driver, "pool": pool, "device": key[2]}
            )
        if len(found) == exactly.get("count", 1):
            return found
    return None


def _devices(api: Api, node: str) -> Iterator[tuple[str, str, Object]]:
    for entry in api.store.all(SLICE):
        spec = entry["spec"]
        if spec.get("nodeName") == node:
            for device in spec.get("devices") or []:
                yield spec["driver"], spec["pool"]["name"], device


def _holds(expression: str, driver: str, device: Object) -> bool:
    """Whether a CEL condition holds; the few forms that the tests use."""
    if found := _DRIVER.fullmatch(expression.strip()):
        return found[1] == driver
    if found := _MEMORY.fullmatch(expression.strip()):
        has = amount(((device.get("capacity") or {}).get(found["name"]) or {}).get("value"))
        least = amount(found["amount"])
        return has is not None and least is not None and has >= least
    if found := _ATTRIBUTE.fullmatch(expression.strip()):
        attribute = (device.get("attributes") or {}).get(found["name"]) or {}
        return attribute.get("string") == found["value"]
    raise NotImplementedError(f"the fake scheduler cannot evaluate {expression!r}")


def allocate(api: Api, pod: Object, claims: list[Object], chosen: list[list[Object]]) -> None:
    """Write down which devices the Pod's claims got."""
    meta = pod["metadata"]
    for claim, results in zip(claims, chosen, strict=True):
        user = {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": [user]}
        api.set_status(CLAIM, claim, status)
