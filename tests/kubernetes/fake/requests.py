"""From a request to an answer: paths, rights, verbs, lists and subresources."""

import base64
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from tests.kubernetes.fake import patches
from tests.kubernetes.fake.api import Api, Call, parsed
from tests.kubernetes.fake.discovery import REVIEWS, discovery
from tests.kubernetes.fake.errors import ApiError, expired, not_found
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.paths import (
    VERBS,
    NoPathError,
    Request,
    Rights,
    Target,
    find_target,
    is_watch,
    selected,
    shown,
)
from tests.kubernetes.fake.selectors import by_selector
from tests.kubernetes.fake.store import Object

RETURNED = frozenset({"Pod", "Service", "ServiceAccount", "ResourceQuota", "PersistentVolumeClaim"})
"""Kinds whose deletion answers with the object; the others answer with a Status."""
BUDGET = kind_of("policy/v1", "PodDisruptionBudget")


@dataclass
class Answerer:
    """Answers every request that is no watch."""

    api: Api
    rights: Rights = field(default_factory=Rights)
    logs: dict[tuple[str, str], str] = field(default_factory=dict)
    tokens_from: int = 0

    def answer(self, request: Request) -> tuple[int, Any]:
        """HTTP status and body (an object, or text). Raises ApiError."""
        if (
            request.method == "GET"
            and (found := discovery(self.api.catalogue, request.path)) is not None
        ):
            return HTTPStatus.OK, found
        if request.path.startswith("/apis/authorization.k8s.io/v1/"):
            return HTTPStatus.CREATED, self._review(request)
        target = find_target(self.api, request.path)
        self.check_rights(request, target)
        if target.subresource:
            return self._subresource(request, target)
        if not target.name:
            return self._collection(request, target)
        return self._single(request, target)

    def _review(self, request: Request) -> Object:
        plural = request.path.rsplit("/", 1)[1]
        if ("authorization.k8s.io", "v1", plural) not in REVIEWS or plural.endswith("rulesreviews"):
            raise NoPathError
        body = _mapping(parsed(request.body))
        asked = _mapping(_mapping(body.get("spec")).get("resourceAttributes"))
        allowed = self.rights.may(
            asked.get("verb", ""), asked.get("group", ""), asked.get("resource", "")
        )
        return body | {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "status": {"allowed": allowed},
        }

    def check_rights(self, request: Request, target: Target) -> None:
        """Raises 403 for what the caller may not do."""
        kind, verb = target.kind, VERBS.get(request.method, "get")
        if not target.name:
            verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
            verb = "watch" if is_watch(request) else verb
        resource = "/".join(filter(None, (kind.plural, target.subresource)))
        if self.rights.may(verb, kind.group, resource):
            return
        shown = f"{kind.full}" + (f' "{target.name}"' if target.name else "")
        where = (
            f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
        )
        raise ApiError(
            403,
            f'{shown} is forbidden: User "system:serviceaccount:consort:consort" '
            f'cannot {verb} resource "{resource}" in API group "{kind.group}" '
            f"{where}",
            details={"group": kind.group, "kind": kind.plural, "name": target.name},
        )

    def _collection(self, request: Request, target: Target) -> tuple[int, Any]:
        kind, space = target.kind, target.namespace
        if request.method == "GET":
            return HTTPStatus.OK, self._list(request, target)
        if request.method == "POST":
            if kind.namespaced and not space:
                raise ApiError(
                    405, "the server does not allow this method on the requested resource"
                )
            body = _object(request, target)
            item = self.api.create(kind, space, body, _call(request, target))
            return HTTPStatus.CREATED, shown(item, target)
        if request.method == "DELETE":
            match = selected(request)
            options = _mapping(parsed(request.body))
            for item in [i for i in self.api.store.all(kind, space) if match(i)]:
                meta = item["metadata"]
                self.api.delete(
                    kind, meta.get("namespace", ""), meta["name"], options, dry_run=request.dry_run
                )
            return HTTPStatus.OK, {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
            }
        raise ApiError(405, "the server does not allow this method on the requested resource")

    def _single(self, request: Request, target: Target) -> tuple[int, Any]:
        kind, space, name = target.kind, target.namespace, target.name
        if request.method == "GET":
            return HTTPStatus.OK, shown(self.api.read(kind, space, name), target)
        if request.method == "DELETE":
            return self._delete(request, target)
        call = _call(request, target)
        if request.method == "PUT":
            item = self.api.replace(kind, space, name, _object(request, target), call)
            return HTTPStatus.OK, shown(item, target)
        if request.method != "PATCH":
            raise ApiError(405, "the server does not allow this method on the requested resource")
        there = self.api.store.get(kind, space, name) is not None
        item = self.api.patch(kind, space, name, parsed(request.body), _content(request), call)
        return HTTPStatus.OK if there else HTTPStatus.CREATED, shown(item, target)

    def _delete(self, request: Request, target: Target) -> tuple[int, Any]:
        options = _mapping(parsed(request.body))
        if "gracePeriodSeconds" in request.query:
            options["gracePeriodSeconds"] = int(request.query["gracePeriodSeconds"])
        if "propagationPolicy" in request.query:
            options["propagationPolicy"] = request.query["propagationPolicy"]
        item, gone = self.api.delete(
            target.kind, target.namespace, target.name, options, dry_run=request.dry_run
        )
        if target.kind.name in RETURNED or not gone:
            return HTTPStatus.OK, shown(item, target)
        details = {
            "name": target.name,
            "group": target.kind.group,
            "kind": target.kind.plural,
            "uid": item["metadata"]["uid"],
        }
        return HTTPStatus.OK, {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }

    def _list(self, request: Request, target: Target) -> Object:
        store, kind = self.api.store, target.kind
        with store.lock:
            version = store.version
            wanted = request.query.get("resourceVersion", "")
            if request.query.get("resourceVersionMatch") and int(wanted or 0) > version:
                raise ApiError(504, f"Too large resource version: {wanted}, current: {version}")
            match = selected(request)
            found = [item for item in store.all(kind, target.namespace) if match(item)]
        meta: Object = {"resourceVersion": str(version)}
        if token := request.query.get("continue"):
            at, start = self._opened(token)
            meta["resourceVersion"] = str(at)
            found = [item for item in found if _place(item) > start]
        limit = int(request.query.get("limit") or 0)
        if limit and len(found) > limit:
            last = _place(found[limit - 1])
            meta["remainingItemCount"] = len(found) - limit
            meta["continue"] = _token(int(meta["resourceVersion"]), last)
            found = found[:limit]
        listed = [shown(item, target) for item in found]
        if not kind.custom:
            listed = [
                {k: v for k, v in item.items() if k not in {"kind", "apiVersion"}}
                for item in listed
            ]
        return {
            "kind": f"{kind.name}List",
            "apiVersion": target.api_version,
            "metadata": meta,
            "items": listed,
        }

    def _opened(self, token: str) -> tuple[int, list[str]]:
        try:
            at, start = json.loads(base64.urlsafe_b64decode(token))
        except ValueError as error:
            raise ApiError(400, f"continue key is not valid: {error}") from error
        if at < max(self.tokens_from, self.api.store.oldest):
            raise expired(
                "The provided continue parameter is too old to display a consistent "
                "list result. You can start a new list without the continue "
                "parameter."
            )
        return at, start

    def _subresource(self, request: Request, target: Target) -> tuple[int, Any]:
        kind, name = target.kind, target.subresource
        if name == "status" and kind.status:
            return self._single(request, target)
        if name == "scale" and kind.scale:
            return HTTPStatus.OK, self._scale(request, target)
        if name == "log" and kind.name == "Pod":
            return HTTPStatus.OK, self._log(request, target)
        if name == "eviction" and kind.name == "Pod":
            return HTTPStatus.CREATED, self._evict(target)
        raise not_found(f"{kind.plural}/{name}", kind.group, target.name)

    def _scale(self, request: Request, target: Target) -> Object:
        kind, space, name = target.kind, target.namespace, target.name
        with self.api.store.lock:
            item = self.api.read(kind, space, name)
            scale = _scale_of(item)
            if request.method == "GET":
                return scale
            body = parsed(request.body)
            if request.method == "PATCH":
                body = patches.patched(scale, body, _content(request))
            wanted = _mapping(_mapping(body).get("spec")).get("replicas", 0)
            new = item | {"spec": item["spec"] | {"replicas": wanted}}
            new["metadata"] = item["metadata"] | {
                "resourceVersion": (body.get("metadata") or {}).get("resourceVersion")
            }
            call = _call(request, target)
            return _scale_of(self.api.replace(kind, space, name, new, call))

    def _log(self, request: Request, target: Target) -> str:
        pod = self.api.read(target.kind, target.namespace, target.name)
        wanted = request.query.get("container") or pod["spec"]["containers"][0]["name"]
        if wanted not in {c["name"] for c in pod["spec"]["containers"]}:
            raise ApiError(400, f"container {wanted} is not valid for pod {target.name}")
        statuses = pod.get("status", {}).get("containerStatuses") or []
        begun = {"running", "terminated"}
        if not any(begun & set(s["state"]) or "lastState" in s for s in statuses):
            raise ApiError(400, f'container "{wanted}" in pod "{target.name}" is waiting to start')
        text = self.logs.get((target.namespace, target.name), f"{target.name}: started\n")
        if lines := request.query.get("tailLines"):
            text = "".join(text.splitlines(keepends=True)[-int(lines) :])
        most = int(request.query.get("limitBytes") or len(text))
        return text[:most]

    def _evict(self, target: Target) -> Object:
        pod = self.api.read(target.kind, target.namespace, target.name)
        for budget in self.api.store.all(BUDGET, target.namespace):
            allowed = (budget.get("status") or {}).get("disruptionsAllowed", 0)
            if by_selector(budget["spec"].get("selector"))(pod) and not allowed:
                raise ApiError(
                    429,
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    details={"causes": [{"reason": "DisruptionBudget"}]},
                )
        self.api.delete(target.kind, target.namespace, target.name)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def _call(request: Request, target: Target) -> Call:
    return Call(
        manager=request.manager,
        subresource=target.subresource,
        dry_run=request.dry_run,
        force=request.query.get("force") in {"true", "True", "1"},
        strict=request.query.get("fieldValidation") == "Strict",
        api_version=target.api_version,
    )


def _object(request: Request, target: Target) -> Object:
    body = parsed(request.body)
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise ApiError(400, "the body of the request is no object")
    kind = target.kind
    versions = {f"{kind.group}/{v}".lstrip("/") for v in (kind.version, *kind.versions)}
    given = body.get("kind") or kind.name, body.get("apiVersion") or kind.api_version
    if given[0] != kind.name or given[1] not in versions:
        raise ApiError(
            400,
            f"the API version in the data ({given[1]}, {given[0]}) does not match "
            f"the expected API version ({target.api_version}, {kind.name})",
        )
    return body | {"kind": kind.name, "apiVersion": kind.api_version}


def _mapping(value: Any) -> Object:
    """The object that was sent, or none at all. Raises 400 for anything else."""
    if value is None or isinstance(value, dict):
        return value or {}
    raise ApiError(400, f"json: cannot unmarshal {type(value).__name__} into an object")


def _content(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip()


def _scale_of(item: Object) -> Object:
    meta = {
        key: item["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    spec, status = item["spec"], item.get("status") or {}
    wanted = {"replicas": spec["replicas"]} if spec.get("replicas") else {}
    labels = ((spec.get("selector") or {}).get("matchLabels") or {}).items()
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": meta,
        "spec": wanted,
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": ",".join(f"{k}={v}" for k, v in labels),
        },
    }


def _place(item: Object) -> list[str]:
    return [item["metadata"].get("namespace", ""), item["metadata"]["name"]]


def _token(version: int, last: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, last]).encode()).decode()
