"""A worker that dies while files are brought to a cluster's nodes: one Job, and the same end."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.serving.models import Endpoint, Wave
from tests.controlplane.serving.boundary import Boundary, ScriptedRouter, proxy_of
from tests.controlplane.serving.clusters import Place
from tests.controlplane.serving.factories import make_applying
from tests.controlplane.serving.killing import KillAt, Worker, finish
from tests.controlplane.serving.targets.kubernetes.test_prefetching import (
    Jobs,
    pool_with_files,
    stated,
)
from tests.inventory.test_objectstore import FakeStore

pytestmark = [
    pytest.mark.processes, pytest.mark.fake_only, pytest.mark.django_db(transaction=True)
]  # fmt: skip

IMAGE = "registry.example/consort:1"


@pytest.fixture
def proxy(place: Place, settings: Any) -> Iterator[Boundary]:
    proxy = proxy_of(place.cluster.url)
    server = Path(settings.CLUSTER_CREDENTIALS_DIR) / place.row.connection_reference / "server"
    server.write_text(proxy.url)
    yield proxy
    proxy.close()


@pytest.fixture
def store() -> Iterator[FakeStore]:
    server = FakeStore()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("call", "when"),
    [
        (r"GET \S+/jobs/", "before"),
        (r"POST \S+/jobs", "before"),
        (r"POST \S+/jobs", "after"),
        (r"GET \S+/log\?", "after"),
    ],
)
def test_files_are_brought_once_wherever_the_worker_is_killed(
    place: Place,
    proxy: Boundary,
    scripted_router: ScriptedRouter,
    store: FakeStore,
    tmp_path: Path,
    settings: Any,
    call: str,
    when: str,
) -> None:
    settings.PREFETCH_IMAGE = IMAGE
    Jobs(place)
    sha256 = stated(tmp_path / "source")
    pool, node = pool_with_files(store, tmp_path / "node", sha256), place.node()
    plan = make_applying(pool, node, role="both", ready_seconds=60.0)
    killing = KillAt(plan, Wave.Step.PREFETCH, call, when, proxy, scripted_router.server)
    environment = {
        "CLUSTER_CREDENTIALS_DIR": settings.CLUSTER_CREDENTIALS_DIR, "PREFETCH_IMAGE": IMAGE,
    }  # fmt: skip

    code = killing.run(Worker(pool, environment))
    assert (code, len(killing.calls)) == (-signal.SIGKILL, 1)
    finish(plan)

    assert (plan.state, plan.outcome) == ("succeeded", "Waves done: 1.")
    assert len(place.cluster.all("batch/v1", "Job", place.namespace)) == 1
    assert Wave.objects.get().detail["files"] == {node.hostname: sha256}
    assert Endpoint.objects.get().state == "ready"
    fetched = [path for path in store.requests if "list-type" not in path]
    assert len(fetched) == len(set(fetched)) == 2
