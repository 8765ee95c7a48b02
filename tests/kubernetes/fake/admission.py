"""What an object goes through before it is stored: types, defaults, rules, quotas."""

from typing import Any

from tests.kubernetes.fake import builtin, crds, typed
from tests.kubernetes.fake.errors import ApiError, forbidden, invalid
from tests.kubernetes.fake.kinds import Kind, kind_of
from tests.kubernetes.fake.quantities import amount
from tests.kubernetes.fake.store import Object, Store

QUOTA, POD = kind_of("v1", "ResourceQuota"), kind_of("v1", "Pod")
FINISHED = frozenset({"Succeeded", "Failed"})


def admit(store: Store, kind: Kind, item: Object, before: Object | None, *, strict: bool) -> Object:
    """The object as it would be stored. Raises ApiError 400, 403 or 422."""
    meta = item["metadata"]
    causes = builtin.meta_causes(kind, meta)
    if kind.custom:
        spec, reading = crds.read_spec(kind.name, item.get("spec", {}))
        _refuse_unknown(reading.unknown, strict=strict)
        if "spec" in item or reading.causes:
            item = item | {"spec": spec}
        causes += reading.causes
    else:
        item = typed.checked(kind, item, strict=strict)
        item = builtin.with_defaults(kind, item, before)
        causes += builtin.spec_causes(kind, item, before)
    if causes:
        raise invalid(kind.name, kind.group, meta.get("name", ""), causes)
    if kind is POD and before is None:
        _check_quota(store, item)
    return item


def known_fields(kind: Kind, wish: Object, *, strict: bool) -> None:
    """An apply refuses fields that the schema does not declare, and wrong types: with a 500."""
    if kind.custom:
        unknown, wrong = crds.read_spec(kind.name, wish.get("spec", {}))[1].unknown, []
    else:
        unknown, wrong = typed.unknown_fields(kind, wish), typed.wrong_types(kind, wish)
    _refuse_unknown(unknown, strict=strict)
    said = [f".{path}: field not declared in schema" for path in unknown]
    said += [f".{text}" for text in wrong]
    if said:
        name = f"{wish['metadata'].get('namespace', '')}/{wish['metadata']['name']}"
        what = f"({name}; {kind.api_version}, Kind={kind.name})"
        message = f"failed to create typed patch object {what}: {said[0]}"
        raise ApiError(500, message, reason="")


def first_status(kind: Kind, item: Object) -> Object:
    """What a new object's status says; what the caller wrote there counts for Nodes only."""
    if kind.name == "Node" or not kind.status:
        return item
    item = {key: value for key, value in item.items() if key != "status"}
    first: dict[str, Any] = {
        "Namespace": {"phase": "Active"},
        "Pod": {"phase": "Pending", "qosClass": "Burstable"},
        "PersistentVolumeClaim": {"phase": "Pending"},
        "Service": {"loadBalancer": {}},
    }
    if kind.custom or kind.name == "ResourceClaim":
        return item
    return item | {"status": first.get(kind.name, {})}


def terminating(kind: Kind, name: str, namespace: str) -> ApiError:
    """Nothing new is created in a namespace that is being deleted."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    causes = [
        {
            "reason": "NamespaceTerminating",
            "field": "metadata.namespace",
            "message": f"namespace {namespace} is being terminated",
        }
    ]
    return forbidden(kind.plural, kind.group, name, why, causes=causes)


def _refuse_unknown(unknown: list[str], *, strict: bool) -> None:
    if strict and unknown:
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise ApiError(400, f"strict decoding error: {listed}")


def requests(pod: Object) -> dict[str, Any]:
    """What a Pod's containers ask for together, by resource."""
    total: dict[str, Any] = {}
    for container in pod["spec"]["containers"]:
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, 0) + (amount(value) or 0)
    return total


def _check_quota(store: Store, pod: Object) -> None:
    space, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    for quota in store.all(QUOTA, space):
        hard = (quota.get("spec") or {}).get("hard") or {}
        living = [p for p in store.all(POD, space) if p["status"].get("phase") not in FINISHED]
        for key, most in hard.items():
            asked = counted(pod, key)
            used = sum(counted(other, key) for other in living)
            if asked and used + asked > (amount(most) or 0):
                why = (
                    f"exceeded quota: {quota['metadata']['name']}, requested: {key}={asked}, "
                    f"used: {key}={used}, limited: {key}={most}"
                )
                raise forbidden("pods", "", name, why)


def counted(pod: Object, key: str) -> Any:
    """How much of a quota's resource a Pod takes."""
    if key in {"pods", "count/pods"}:
        return 1
    return requests(pod).get(key.removeprefix("requests."), 0)
