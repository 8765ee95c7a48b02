"""A real cluster behind the methods of the fake one that tests of both rings use.

Nodes that a test adds are Node objects without machines: a thread here plays their kubelets, with
the same hooks as the fake's (`engine_for`, `kubelets.fail`). Everything made carries a label and
is deleted at the end, and nothing else is.
"""

import shutil
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from kubernetes import config
from kubernetes.client.exceptions import ApiException

from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.kubelets import Kubelets, PodRun
from tests.kubernetes.fake.nodes import node
from tests.kubernetes.remote import LEASE, LEASES, NODE, RemoteApi

Object = dict[str, Any]
RUN = "consort.test/run"
POLL_SECONDS, LEASE_SECONDS = 0.2, 10.0
QUIET_POLLS = 8
NAMESPACE = kind_of("v1", "Namespace")
WATCHED = tuple(
    kind_of(*names)
    for names in (("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("v1", "Pod"))
)


class RealCluster:
    """The cluster of a kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig
        self.client = config.new_client_from_config(kubeconfig)
        self.url: str = self.client.configuration.host
        self.api = RemoteApi(self.client)
        # The kubelets ask for objects and report status, which both APIs offer alike.
        self.kubelets = Kubelets(cast("Api", self.api))
        self._run = uuid.uuid4().hex[:8]
        self._nodes: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def engine_for(self) -> Callable[[Object], PodRun | None] | None:
        """Called when a Pod's containers start."""
        return self.kubelets.engine_for

    @engine_for.setter
    def engine_for(self, hook: Callable[[Object], PodRun | None] | None) -> None:
        self.kubelets.engine_for = hook

    def namespace(self, prefix: str = "consort") -> str:
        """A new namespace with a random name."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        self.api.create(NAMESPACE, "", {"metadata": {"name": name, "labels": {RUN: self._run}}})
        return name

    def add_node(self, name: str, vendor: str = "nvidia", **facts: Any) -> Object:
        """A ready Node of a vendor."""
        item = node(name, vendor, **facts)
        item["metadata"]["labels"][RUN] = self._run
        made = self.api.create(NODE, "", item)
        self._nodes.add(name)
        self.api.renew_lease(name)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        return made

    def create(self, manifest: Object) -> Object:
        """Make an object."""
        kind = kind_of(manifest["apiVersion"], manifest["kind"])
        return self.api.create(kind, manifest["metadata"].get("namespace", ""), manifest)

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object as stored; None when it is not there."""
        return self.api.get(kind_of(api_version, kind), namespace, name)

    def all(self, api_version: str, kind: str, namespace: str = "") -> list[Object]:
        """The objects of a kind."""
        return self.api.all(kind_of(api_version, kind), namespace)

    def change(
        self,
        api_version: str,
        kind: str,
        name: str,
        by: Callable[[Object], Any],
        *,
        namespace: str = "",
    ) -> Object:
        """Let somebody else change an object: `by` changes a copy in place."""
        found = kind_of(api_version, kind)
        item = self.api.get(found, namespace, name) or {}
        by(item)
        return self.api.replace(found, namespace, name, item)

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Let somebody else delete an object; gone already is no error."""
        self.api.delete(kind_of(api_version, kind), namespace, name)

    def write_credentials(self, folder: Path) -> Path:
        """A folder of credentials, as an installation keeps one per cluster."""
        folder.mkdir(parents=True)
        shutil.copy(self.kubeconfig, folder / "kubeconfig")
        (folder / "kubeconfig").chmod(0o600)
        return folder

    def until(self, found: Callable[[], Any], seconds: float = 30.0) -> Any:
        """Wait until `found` is true, and return what it found; AssertionError when it is not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if value := found():
                return value
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"not reached within {seconds} s")

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until Deployments and Pods of this run have stopped changing for a while."""
        seen: list[Any] = []

        def quiet() -> bool:
            seen.append(self._versions())
            return len(seen) > QUIET_POLLS and all(s == seen[-1] for s in seen[-QUIET_POLLS:])

        self.until(quiet, seconds)

    def _versions(self) -> list[str]:
        spaces = self.api.all(NAMESPACE, labels=f"{RUN}={self._run}")
        names = [space["metadata"]["name"] for space in spaces]
        return [
            item["metadata"]["resourceVersion"]
            for kind in WATCHED
            for name in names
            for item in self.api.all(kind, name)
        ]

    def _work(self) -> None:
        """Play the kubelets of the added nodes; what others change meanwhile waits a round."""
        renewed = 0.0
        while not self._stop.wait(POLL_SECONDS):
            try:
                if time.monotonic() - renewed > LEASE_SECONDS:
                    renewed = time.monotonic()
                    for name in self._nodes - self.kubelets.silent.keys():
                        self.api.renew_lease(name)
                self.kubelets.run(only=self._nodes)
            except ApiException as error:
                if error.status not in (404, 409):
                    raise

    def __enter__(self) -> "RealCluster":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        mine = f"{RUN}={self._run}"
        for space in self.api.all(NAMESPACE, labels=mine):
            uid = {"preconditions": {"uid": space["metadata"]["uid"]}}
            self.api.delete(NAMESPACE, "", space["metadata"]["name"], uid)
        if self._thread:
            self.until(lambda: not self.api.all(NAMESPACE, labels=mine), seconds=60)
            self._stop.set()
            self._thread.join(timeout=10)
        for name in self._nodes:
            self.api.delete(NODE, "", name)
            self.api.delete(LEASE, LEASES, name)
        self.client.close()
