"""A fake cluster as tests use it: API server, controllers, scheduler and kubelets in one object."""

import copy
import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kubernetes.fake.api import Api, Call
from tests.kubernetes.fake.controller import Controllers
from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.faults import Faults
from tests.kubernetes.fake.kinds import Catalogue, kind_of
from tests.kubernetes.fake.kubelets import Kubelets, PodRun
from tests.kubernetes.fake.nodes import node
from tests.kubernetes.fake.paths import Rights
from tests.kubernetes.fake.requests import Answerer
from tests.kubernetes.fake.server import FakeServer, Write
from tests.kubernetes.fake.store import Object, Store

PAUSE_SECONDS = 0.05
SYSTEM = ("default", "kube-system", "kube-node-lease")


class FakeCluster:
    """One fake cluster; a context manager that listens while it is open.

    `missing` switches kinds off: names of kinds, groups or families (`kinds.FAMILIES`).
    `token`: callers without it get 401. `working`: controllers work in a thread of their own;
    otherwise they work in `tick`, `settle` and `until`, so that a test says when.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        missing: Iterable[str] = (),
        token: str | None = None,
        working: bool = False,
    ) -> None:
        self._working = working
        self.api = Api(Store(), Catalogue(frozenset(missing)))
        self.answerer = Answerer(self.api)
        self.server = FakeServer(self.answerer, port, token)
        self.kubelets = Kubelets(self.api)
        self.controllers = Controllers(self.api, self.kubelets)
        for name in SYSTEM:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.server.url

    @property
    def faults(self) -> Faults:
        """Delays, refusals and silence."""
        return self.server.faults

    @property
    def rights(self) -> Rights:
        """What callers may not do."""
        return self.answerer.rights

    @property
    def missing_images(self) -> set[str]:
        """Images that no registry has."""
        return self.kubelets.missing_images

    @property
    def engine_for(self) -> Callable[[Object], PodRun | None] | None:
        """Called when a Pod's containers start; may begin a real process at the Pod's address."""
        return self.kubelets.engine_for

    @engine_for.setter
    def engine_for(self, hook: Callable[[Object], PodRun | None] | None) -> None:
        self.kubelets.engine_for = hook

    @property
    def engine_stopped(self) -> Callable[[Object], None] | None:
        """Called when a Pod ends."""
        return self.kubelets.engine_stopped

    @engine_stopped.setter
    def engine_stopped(self, hook: Callable[[Object], None] | None) -> None:
        self.kubelets.engine_stopped = hook

    @property
    def logs(self) -> dict[tuple[str, str], str]:
        """What a Pod's log says, by namespace and name."""
        return self.answerer.logs

    @property
    def requests(self) -> list[tuple[str, str]]:
        """Method and path of everything that was asked."""
        return self.server.requests

    @property
    def writes(self) -> list[Write]:
        """What was asked to be written by callers, refused or not; dry runs are not among them."""
        return self.server.writes

    def namespace(self, prefix: str = "consort") -> str:
        """A new namespace with a random name."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    def write_credentials(self, folder: Path) -> Path:
        """A folder of credentials, as an installation keeps one per cluster."""
        folder.mkdir(parents=True)
        (folder / "server").write_text(self.url)
        (folder / "token").write_text(self.server.token or "nobody-asks")
        return folder

    def until(self, found: Callable[[], Any], seconds: float = 30.0) -> Any:
        """Let controllers work until `found` is true, and return what it found."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if value := found():
                return value
            if not self.tick():
                # What is waited for happens outside: an engine that starts, a caller that writes.
                with self.api.store.changed:
                    self.api.store.changed.wait(PAUSE_SECONDS)
        raise AssertionError(f"not reached within {seconds} s")

    def tick(self) -> bool:
        """One round of controllers, scheduler and kubelets; whether anything changed."""
        return self.controllers.tick()

    def settle(self) -> int:
        """Rounds until nothing changes; how many there were."""
        return self.controllers.settle()

    def add_node(self, name: str, vendor: str = "nvidia", **facts: Any) -> Object:
        """A ready Node of a vendor (`nodes.node`)."""
        return self.create(node(name, vendor, **facts))

    def lose_node(self, name: str) -> None:
        """A node's kubelet falls silent: not ready at once, Pods evicted after five minutes."""
        self.controllers.lose_node(name)

    def find_node(self, name: str) -> None:
        """A node's kubelet reports again."""
        self.controllers.find_node(name)

    def set_status(
        self, api_version: str, kind: str, name: str, status: Object, namespace: str = ""
    ) -> Object:
        """Let a controller report about an object."""
        found = kind_of(api_version, kind)
        return self.api.set_status(found, self.api.read(found, namespace, name), status)

    def create(self, manifest: Object, manager: str = "test") -> Object:
        """Make an object, without HTTP."""
        kind = kind_of(manifest["apiVersion"], manifest["kind"])
        namespace = manifest["metadata"].get("namespace", "")
        return self.api.create(kind, namespace, manifest, Call(manager))

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object as stored, without HTTP; None when it is not there."""
        return self.api.store.get(kind_of(api_version, kind), namespace, name)

    def all(self, api_version: str, kind: str, namespace: str = "") -> list[Object]:
        """The objects of a kind, without HTTP."""
        return self.api.store.all(kind_of(api_version, kind), namespace)

    def change(
        self,
        api_version: str,
        kind: str,
        name: str,
        by: Callable[[Object], Any],
        *,
        namespace: str = "",
        manager: str = "somebody",
    ) -> Object:
        """Let somebody else change an object: `by` changes a copy in place."""
        found = kind_of(api_version, kind)
        item = copy.deepcopy(self.api.read(found, namespace, name))
        by(item)
        return self.api.replace(found, namespace, name, item, Call(manager))

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Let somebody else delete an object; gone already is no error."""
        try:
            self.api.delete(kind_of(api_version, kind), namespace, name)
        except ApiError as error:
            if error.status != 404:
                raise

    def install(self, *names: str) -> None:
        """Bring kinds that were missing."""
        self.api.catalogue.missing -= set(names)

    def advance(self, seconds: float) -> None:
        """Move the cluster's clock forward."""
        self.api.clock.ahead += dt.timedelta(seconds=seconds)

    def expire(self) -> None:
        """Watches and continue tokens from before now answer 410."""
        self.api.store.compact()

    def cut_watches(self) -> None:
        """Break all open watches off."""
        self.server.cut_watches()

    def start(self) -> "FakeCluster":
        """Listen."""
        self.server.start()
        if self._working:
            self.controllers.start()
        return self

    def stop(self) -> None:
        """Stop listening."""
        self.controllers.stop()
        self.server.stop()

    def __enter__(self) -> "FakeCluster":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
