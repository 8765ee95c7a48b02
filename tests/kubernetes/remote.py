"""A cluster's objects over HTTP, with the few methods of the fake's `Api` that kubelets need."""

import json
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.kubernetes.fake.api import Clock
from tests.kubernetes.fake.kinds import Kind, kind_of

Object = dict[str, Any]
SECONDS = 10
MERGE = "application/merge-patch+json"
LEASE, NODE = kind_of("coordination.k8s.io/v1", "Lease"), kind_of("v1", "Node")
LEASES = "kube-node-lease"


class RemoteApi:
    """Objects by kind, namespace and name, as plain dicts; refusals are ApiException."""

    def __init__(self, api: client.ApiClient) -> None:
        self._client = api
        self.clock = Clock()

    @property
    def store(self) -> "RemoteApi":
        """Reading is here as well."""
        return self

    def all(self, kind: Kind, namespace: str = "", labels: str = "") -> list[Object]:
        """The objects of a kind."""
        query = [("labelSelector", labels)] if labels else []
        found = self._ask("GET", _path(kind, namespace), query=query)
        facts = {"apiVersion": kind.api_version, "kind": kind.name}
        return [facts | item for item in found["items"]]

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object; None when it is not there."""
        try:
            return self._ask("GET", _path(kind, namespace, name))
        except ApiException as error:
            if error.status != 404:
                raise
            return None

    def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        """A new object."""
        return self._ask("POST", _path(kind, namespace), body)

    def replace(self, kind: Kind, namespace: str, name: str, body: Object) -> Object:
        """Another state in the object's place."""
        return self._ask("PUT", _path(kind, namespace, name), body)

    def delete(self, kind: Kind, namespace: str, name: str, options: Object | None = None) -> None:
        """Begin to delete; gone already is no error."""
        try:
            self._ask("DELETE", _path(kind, namespace, name), options or {})
        except ApiException as error:
            if error.status != 404:
                raise

    def drop(self, kind: Kind, item: Object) -> None:
        """Delete at once, this very object, as a kubelet does with a Pod that ended."""
        meta = item["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        self.delete(kind, meta.get("namespace", ""), meta["name"], options)

    def set_status(self, kind: Kind, item: Object, status: Object) -> Object:
        """Report about an object; nothing is written when it is the same."""
        if item.get("status") == status:
            return item
        meta = item["metadata"]
        path = _path(kind, meta.get("namespace", ""), meta["name"]) + "/status"
        return self._ask("PATCH", path, {"status": status})

    def renew_lease(self, node: str) -> None:
        """Say that a node lives."""
        now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now}
        try:
            self._ask("PATCH", _path(LEASE, LEASES, node), {"spec": spec})
        except ApiException as error:
            if error.status != 404:
                raise
            self.create(LEASE, LEASES, {"metadata": {"name": node}, "spec": spec})

    def _ask(
        self, method: str, path: str, body: Any = None, query: list[tuple[str, str]] | None = None
    ) -> Any:
        headers = {
            "Accept": "application/json",
            "Content-Type": MERGE if method == "PATCH" else "application/json",
        }
        request = self._client.param_serialize(
            method,
            path,
            query_params=query or [],
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = self._client.call_api(*request, _request_timeout=SECONDS)
        answer.read()
        if answer.status >= 400:
            raise ApiException(status=answer.status, reason=answer.data)
        return json.loads(answer.data)


def _path(kind: Kind, namespace: str, name: str = "") -> str:
    start = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    space = f"/namespaces/{namespace}" if namespace and kind.namespaced else ""
    return f"{start}{space}/{kind.plural}" + (f"/{name}" if name else "")
