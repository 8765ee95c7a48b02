"""A cluster as serving meets it: rows, credentials, and simulated engines behind its Pods."""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.serving.models import Pool
from inventory.models import Cluster, Node
from inventory.services import clusters
from tests.controlplane.serving.factories import make_fleet_node, make_pool
from tests.controlplane.serving.processes import PROJECT
from tests.inventory.factories import make_cluster

if TYPE_CHECKING:
    from tests.kubernetes.fake.cluster import FakeCluster
    from tests.kubernetes.fake.kubelets import PodRun

VENDORS = {"nvidia-h100-nvl": "nvidia", "amd-mi325x": "amd", "intel-gaudi3": "habana"}
IMAGES = {vendor: f"registry.example/{vendor}:1" for vendor in ("nvidia", "amd", "intel-gaudi")}

Object = dict[str, Any]


class EnginePods:
    """Starts what a Pod's container says, at the Pod's address on loopback."""

    def __init__(self, cluster: "FakeCluster") -> None:
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        cluster.engine_for, cluster.engine_stopped = self._start, self._stop
        self._servers: dict[str, ThreadingHTTPServer] = {}
        self.started: list[str] = []
        """Names of the Pods whose engines were started, in order."""
        self.broken: dict[str, str] = {}
        """By role, the model that its engines list; they complete nothing."""

    def _start(self, pod: Object) -> "PodRun":
        from tests.kubernetes.fake.kubelets import PodRun

        [container] = pod["spec"]["containers"]
        address = pod["status"]["podIP"]
        words = [word.replace("$(POD_IP)", address) for word in container["command"]]
        self.started.append(pod["metadata"]["name"])
        role = words[words.index("--role") + 1]
        if role in self.broken:
            self._servers[pod["metadata"]["uid"]] = broken_engine(address, self.broken[role])
            return PodRun(ready="probe")
        self._children[pod["metadata"]["uid"]] = subprocess.Popen(
            [sys.executable, *words[1:]], cwd=PROJECT,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return PodRun(ready="probe")

    def _stop(self, pod: Object) -> None:
        self.kill(pod["metadata"]["uid"])

    def kill(self, uid: str) -> None:
        """End the engine of a Pod, which its kubelet does not do."""
        if (server := self._servers.pop(uid, None)) is not None:
            server.shutdown()
            server.server_close()
        child = self._children.pop(uid, None)
        if child is not None:
            child.kill()
            child.wait(10)

    def close(self) -> None:
        """End all engines."""
        for uid in [*self._children, *self._servers]:
            self.kill(uid)


def broken_engine(address: str, model: str) -> ThreadingHTTPServer:
    """Healthy, lists a model, and fails at every completion."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"data": [{"id": model}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(500)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests look at conditions."""

    server = ThreadingHTTPServer((address, 8000), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


@dataclass
class Place:
    """A cluster with its row."""

    cluster: Any
    row: Cluster
    engines: EnginePods | None = None

    @property
    def namespace(self) -> str:
        """Where engines run."""
        return self.row.namespace

    def node(self, slug: str = "amd-mi325x", *, accelerators: int = 1, **overrides: Any) -> Node:
        """A node with accelerators, in the inventory and in the cluster."""
        node = make_fleet_node(slug, accelerators=accelerators, cluster=self.row, **overrides)
        self.cluster.add_node(node.hostname, VENDORS[slug])
        return node

    def deployments(self) -> list[Object]:
        """Deployments of the namespace, as stored."""
        found: list[Object] = self.cluster.all("apps/v1", "Deployment", self.namespace)
        return found

    def pods(self) -> list[Object]:
        """Pods of the namespace, as stored."""
        found: list[Object] = self.cluster.all("v1", "Pod", self.namespace)
        return found

    def changes(self) -> int:
        """Writes so far that changed something."""
        return sum(1 for write in self.cluster.writes if write.changed)


def make_place(cluster: Any, folder: Path, name: str = "c1") -> Place:
    """The row of a cluster whose credentials are below the folder."""
    cluster.write_credentials(folder / name)
    row = make_cluster(
        kind="kubernetes", connection_reference=name, slug=name,
        namespace=cluster.namespace("engines"),
    )  # fmt: skip
    return Place(cluster, row)


def make_container_pool(**overrides: Any) -> Pool:
    """A pool that says enough of containers, and whose engines end without a wait."""
    containers = {"images": IMAGES, "drain_seconds": 1, "max_answer_seconds": 0}
    return make_pool(containers=containers | overrides.pop("containers", {}), **overrides)


def forget(place: Place) -> None:
    """Close what this process keeps open to the cluster."""
    clusters.forget_client(place.row.pk)
