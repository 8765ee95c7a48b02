"""What the API server does with objects: create, read, replace, patch, apply, delete."""

import datetime as dt
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.kubernetes.fake import admission, ownership, patches
from tests.kubernetes.fake.errors import (
    ApiError,
    already_exists,
    conflict,
    not_found,
)
from tests.kubernetes.fake.kinds import Catalogue, Kind, kind_of
from tests.kubernetes.fake.store import Object, Store

NAMESPACE = kind_of("v1", "Namespace")
SERVICE_ACCOUNT = kind_of("v1", "ServiceAccount")
CONTROLLER = "kube-controller-manager"
FOREGROUND = "foregroundDeletion"
PROTOBUF = b"k8s\x00"


@dataclass
class Clock:
    """The server's time: real, moved forward by what a test added."""

    ahead: dt.timedelta = dt.timedelta()

    def now(self) -> dt.datetime:
        """The time, in UTC."""
        return dt.datetime.now(dt.UTC) + self.ahead

    def stamp(self) -> str:
        """The time as objects carry it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Call:
    """The facts of a request that decide about an object's write."""

    manager: str = CONTROLLER
    subresource: str = ""
    dry_run: bool = False
    force: bool = False
    strict: bool = False
    api_version: str = ""


BY_CONTROLLER = Call()


@dataclass
class Api:
    """The objects of one cluster behind the rules of the API server."""

    store: Store = field(default_factory=Store)
    catalogue: Catalogue = field(default_factory=Catalogue)
    clock: Clock = field(default_factory=Clock)

    def read(self, kind: Kind, namespace: str, name: str) -> Object:
        """The object. Raises 404."""
        found = self.store.get(kind, namespace, name)
        if found is None:
            raise not_found(kind.plural, kind.group, name)
        return found

    def create(
        self, kind: Kind, namespace: str, body: Object, call: Call = BY_CONTROLLER
    ) -> Object:
        """Store a new object. Raises 400, 403, 404, 409 or 422."""
        with self.store.lock:
            meta = dict(body.get("metadata") or {})
            if not meta.get("name") and meta.get("generateName"):
                meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
            meta = _placed(kind, namespace, meta)
            if meta.get("resourceVersion"):
                raise ApiError(400, "resourceVersion should not be set on objects to be created")
            self._check_namespace(kind, meta)
            if self.store.get(kind, meta.get("namespace", ""), meta["name"]):
                raise already_exists(kind.plural, kind.group, meta["name"])
            item = body | {"metadata": self._stamped(kind, meta)}
            if kind.status and kind.name != "Node":
                item.pop("status", None)
            item = admission.admit(self.store, kind, item, None, strict=call.strict)
            item = ownership.update(None, item, self._writer(kind, call))
            return self._put(kind, admission.first_status(kind, item), call)

    def replace(
        self, kind: Kind, namespace: str, name: str, body: Object, call: Call = BY_CONTROLLER
    ) -> Object:
        """Put another state in the object's place. Raises 404, 409 or 422."""
        with self.store.lock:
            return self._update(kind, self.read(kind, namespace, name), body, call)

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Any, content_type: str, call: Call
    ) -> Object:
        """Lay a patch on the object; an apply may create it. Raises 4xx."""
        with self.store.lock:
            if content_type in patches.APPLY:
                return self._apply(kind, namespace, name, patch, call)
            if content_type == patches.STRATEGIC and kind.custom:
                raise ApiError(
                    415,
                    "the body of the request was in an unknown format - accepted "
                    "media types include: application/json-patch+json, "
                    "application/merge-patch+json",
                )
            live = self.read(kind, namespace, name)
            body = patches.patched(live, patch, content_type)
            return self._update(kind, live, body, call)

    def _apply(self, kind: Kind, namespace: str, name: str, wish: Any, call: Call) -> Object:
        if not isinstance(wish, dict) or not wish.get("kind") or not wish.get("apiVersion"):
            raise ApiError(400, "an apply needs an object with apiVersion and kind")
        if not call.manager:
            raise ApiError(
                422,
                "PatchOptions.meta.k8s.io is invalid: fieldManager: Required "
                "value: is required for apply patch",
            )
        wish = wish | {
            "metadata": _placed(kind, namespace, {"name": name} | (wish.get("metadata") or {}))
        }
        admission.known_fields(kind, wish, strict=call.strict)
        live = self.store.get(kind, wish["metadata"].get("namespace", ""), name)
        if live is None and call.subresource:
            raise not_found(kind.plural, kind.group, name)
        if not call.subresource and kind.status:
            wish.pop("status", None)
        new = ownership.apply(live, wish, self._writer(kind, call), force=call.force)
        if live is not None:
            return self._update(kind, live, new, call, owned=True)
        if wish["metadata"].get("uid"):
            raise conflict(
                kind.plural,
                kind.group,
                name,
                "Precondition failed: UID in precondition does not match, object is not there",
            )
        self._check_namespace(kind, wish["metadata"])
        item = new | {"metadata": self._stamped(kind, new["metadata"])}
        item = admission.admit(self.store, kind, item, None, strict=call.strict)
        return self._put(kind, admission.first_status(kind, item), call)

    def _update(
        self, kind: Kind, live: Object, body: Object, call: Call, *, owned: bool = False
    ) -> Object:
        meta, before = (
            _placed(kind, live["metadata"].get("namespace", ""), dict(body.get("metadata") or {})),
            live["metadata"],
        )
        name = before["name"]
        if meta["name"] != name:
            raise ApiError(400, "the name of the object does not match the name on the URL")
        if meta.get("uid", before["uid"]) != before["uid"]:
            raise conflict(
                kind.plural,
                kind.group,
                name,
                "Precondition failed: UID in "
                f"precondition: {meta['uid']}, UID in object meta: {before['uid']}",
            )
        if meta.get("resourceVersion") not in (None, "", before["resourceVersion"]):
            raise conflict(
                kind.plural,
                kind.group,
                name,
                "the object has been modified; please "
                "apply your changes to the latest version and try again",
            )
        item = live | {"metadata": _kept(meta, before)}
        item = _laid_over(kind, item, live, body, call.subresource)
        item = admission.admit(self.store, kind, item, live, strict=call.strict)
        if kind.generation and _wish(item) != _wish(live):
            generation = before.get("generation", 1) + 1
            item = item | {"metadata": item["metadata"] | {"generation": generation}}
        if not owned:
            item = ownership.update(live, item, self._writer(kind, call))
        if item == live:
            return live
        return self._put(kind, item, call)

    def _put(self, kind: Kind, item: Object, call: Call) -> Object:
        if call.dry_run:
            return item
        meta = item["metadata"]
        # A Pod on a node waits for its kubelet, a namespace for what is in it.
        waits = kind is NAMESPACE or bool(meta.get("deletionGracePeriodSeconds"))
        held = meta.get("finalizers") or waits
        if meta.get("deletionTimestamp") and not held:
            self.store.drop(kind, item)
            return item
        stored = self.store.put(kind, item)
        if kind is NAMESPACE and not self.store.get(SERVICE_ACCOUNT, meta["name"], "default"):
            account = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default"},
            }
            self.create(SERVICE_ACCOUNT, meta["name"], account)
        return stored

    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        options: Object | None = None,
        *,
        dry_run: bool = False,
    ) -> tuple[Object, bool]:
        """Delete an object, or begin to; the flag says that it is gone. Raises 404 or 409."""
        with self.store.lock:
            item, options = self.read(kind, namespace, name), options or {}
            meta = item["metadata"]
            _check_preconditions(kind, meta, options)
            holds = list(meta.get("finalizers") or [])
            if options.get("propagationPolicy") == "Foreground" and FOREGROUND not in holds:
                holds.append(FOREGROUND)
            grace = _grace(kind, item, options)
            if dry_run:
                return item, True
            if not holds and not grace:
                self.store.drop(kind, item)
                return item, True
            if meta.get("deletionTimestamp") and meta.get("deletionGracePeriodSeconds", 0) <= grace:
                return item, False
            more: Object = {
                "deletionTimestamp": self.clock.stamp(),
                "deletionGracePeriodSeconds": grace,
            }
            if holds:
                more["finalizers"] = holds
            item = item | {"metadata": meta | more}
            if kind is NAMESPACE:
                item = item | {"status": {"phase": "Terminating"}}
            return self.store.put(kind, item), False

    def set_status(self, kind: Kind, item: Object, status: Object) -> Object:
        """What a controller reports about an object; nothing is written when it is the same."""
        meta = item["metadata"]
        live = self.store.get(kind, meta.get("namespace", ""), meta["name"])
        if live is None or live["metadata"]["uid"] != meta["uid"] or live.get("status") == status:
            return item
        call = Call(subresource="status")
        return self.replace(
            kind, meta.get("namespace", ""), meta["name"], live | {"status": status}, call
        )

    def _check_namespace(self, kind: Kind, meta: Object) -> None:
        if not kind.namespaced:
            return
        space = meta.get("namespace", "")
        found = self.store.get(NAMESPACE, "", space)
        if found is None:
            raise not_found("namespaces", "", space)
        if found["metadata"].get("deletionTimestamp"):
            raise admission.terminating(kind, meta["name"], space)

    def _stamped(self, kind: Kind, meta: Object) -> Object:
        stamped = {key: value for key, value in meta.items() if key != "selfLink"}
        stamped |= {"uid": str(uuid.uuid4()), "creationTimestamp": self.clock.stamp()}
        for key in ("resourceVersion", "deletionTimestamp", "generation"):
            stamped.pop(key, None)
        return stamped | ({"generation": 1} if kind.generation else {})

    def _writer(self, kind: Kind, call: Call) -> ownership.Writer:
        version = call.api_version or kind.api_version
        return ownership.Writer(call.manager, version, self.clock.stamp(), call.subresource)


def _check_preconditions(kind: Kind, meta: Object, options: Object) -> None:
    for key, value in (options.get("preconditions") or {}).items():
        if value and meta.get(key) != value:
            why = (
                f"Precondition failed: {key} in precondition: {value}, "
                f"in object meta: {meta.get(key)}"
            )
            raise conflict(kind.plural, kind.group, meta["name"], why)


def _grace(kind: Kind, item: Object, options: Object) -> int:
    """Seconds that a Pod on a node gets to end; others go at once, a namespace when it is empty."""
    if kind is NAMESPACE:
        return 1
    if kind.name != "Pod" or not item["spec"].get("nodeName"):
        return 0
    asked = options.get("gracePeriodSeconds")
    return int(item["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked)


def _placed(kind: Kind, namespace: str, meta: Object) -> Object:
    """The metadata with its namespace. Raises 400 when it names another one than the URL."""
    if not kind.namespaced:
        return {key: value for key, value in meta.items() if key != "namespace"}
    if meta.get("namespace", namespace) != namespace:
        raise ApiError(
            400,
            f"the namespace of the provided object does not match the namespace "
            f"sent on the request: {meta['namespace']} and {namespace}",
        )
    return meta | {"namespace": namespace}


def _kept(meta: Object, before: Object) -> Object:
    """New metadata with what only the server sets."""
    own = (
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "resourceVersion",
        "deletionGracePeriodSeconds",
    )
    kept = {key: value for key, value in meta.items() if key not in own and value is not None}
    return kept | {key: before[key] for key in own if key in before}


def _laid_over(kind: Kind, item: Object, live: Object, body: Object, subresource: str) -> Object:
    """The part of the body that this door lets through."""
    if subresource == "status":
        item = item | {
            "metadata": live["metadata"]
            | {"managedFields": item["metadata"].get("managedFields", [])}
        }
        return item | {"status": body["status"]} if "status" in body else item
    rest = {k: v for k, v in body.items() if k not in {"metadata"} | _held(kind)}
    held = {key: live[key] for key in _held(kind) if key in live}
    facts = {"apiVersion": live["apiVersion"], "kind": live["kind"]}
    return rest | held | facts | {"metadata": item["metadata"]}


def _held(kind: Kind) -> set[str]:
    return {"status"} if kind.status else set()


def _wish(item: Object) -> Object:
    return {k: v for k, v in item.items() if k not in {"metadata", "status"}}


def parsed(body: bytes) -> Any:
    """JSON or YAML of a request's body. Raises 400."""
    if body.startswith(PROTOBUF):
        raise ApiError(415, "the body of the request was in an unknown format: protobuf")
    try:
        return json.loads(body) if body else None
    except ValueError:
        try:
            return yaml.safe_load(body)
        except yaml.YAMLError as error:
            raise ApiError(400, f"the object provided is unrecognized: {error}") from error
