"""Who belongs to whom: owner references, collection of orphans, namespaces that end."""

from collections import defaultdict
from typing import Any

from tests.kubernetes.fake.api import FOREGROUND, NAMESPACE, Api
from tests.kubernetes.fake.kinds import Kind
from tests.kubernetes.fake.store import Object

Owned = dict[str, list[tuple[Kind, Object]]]


def owner_reference(owner: Object) -> Object:
    """The reference that a controller writes into what it makes."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def references(item: Object) -> list[Any]:
    """The owner references of an object."""
    return item["metadata"].get("ownerReferences") or []


def owned_of(items: list[Object]) -> dict[str, list[Object]]:
    """Objects by the uid of each of their owners."""
    found: dict[str, list[Object]] = defaultdict(list)
    for item in items:
        for reference in references(item):
            found[reference["uid"]].append(item)
    return found


def collect(api: Api) -> None:
    """Delete what has lost all its owners, let foreground deletions end, empty namespaces."""
    everything = list(api.store.everything())
    living = {item["metadata"]["uid"] for _, item in everything}
    owned: Owned = defaultdict(list)
    for kind, item in everything:
        uids = [reference["uid"] for reference in references(item)]
        for uid in uids:
            owned[uid].append((kind, item))
        if uids and not living & set(uids):
            _delete(api, kind, item)
    for kind, item in everything:
        if FOREGROUND in (item["metadata"].get("finalizers") or []):
            _end_foreground(api, kind, item, owned)
    for space in api.store.all(NAMESPACE):
        if space["metadata"].get("deletionTimestamp"):
            _empty(api, space)


def _end_foreground(api: Api, kind: Kind, item: Object, owned: Owned) -> None:
    below = owned.get(item["metadata"]["uid"], [])
    for child_kind, child in below:
        _delete(api, child_kind, child, {"propagationPolicy": "Foreground"})
    if below:
        return
    meta = item["metadata"]
    rest = [name for name in meta["finalizers"] if name != FOREGROUND]
    live = api.store.get(kind, meta.get("namespace", ""), meta["name"])
    if live:
        body = live | {"metadata": live["metadata"] | {"finalizers": rest}}
        api.replace(kind, meta.get("namespace", ""), meta["name"], body)


def _empty(api: Api, space: Object) -> None:
    name, left = space["metadata"]["name"], 0
    for kind, item in list(api.store.everything()):
        if item["metadata"].get("namespace") == name:
            left += 1
            _delete(api, kind, item)
    live = api.store.get(NAMESPACE, "", name)
    if live and not left and not live["metadata"].get("finalizers"):
        api.store.drop(NAMESPACE, live)


def _delete(api: Api, kind: Kind, item: Object, options: Object | None = None) -> None:
    meta = item["metadata"]
    live = api.store.get(kind, meta.get("namespace", ""), meta["name"])
    if live and live["metadata"]["uid"] == meta["uid"]:
        api.delete(kind, meta.get("namespace", ""), meta["name"], options)
