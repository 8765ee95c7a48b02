"""Engines that run in a cluster already: adopted without a write, then routed to as they are."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import override_settings
from django.utils import timezone

from controlplane.common.permissions import NotPermittedError
from controlplane.serving import services
from controlplane.serving.errors import AdoptableUnknownError
from controlplane.serving.models import ChangePlan, Endpoint, Pool, Workload
from inventory.models import Cluster, Discovery
from inventory.services import clusters, discover_cluster
from tests.controlplane.serving.boundary import Boundary
from tests.controlplane.serving.factories import make_applying, make_fleet_node, make_pool
from tests.factories import make_admin, make_ben

pytestmark = pytest.mark.django_db(transaction=True)
QWEN = {"kind": "InferencePool", "namespace": "ml", "name": "qwen"}


@pytest.fixture
def engine() -> Iterator[Boundary]:
    """An engine that somebody else runs."""
    completion = b'{"choices":[{"text":"ready"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}'
    answers = {
        "/v1/models": b'{"data":[{"id":"granite-4.1-8b"}]}', "/v1/completions": completion,
        "/health": b"", "/metrics": b"process_start_time_seconds 1.5\n",
    }  # fmt: skip
    server = Boundary(lambda _method, path, *_: (200, answers[path]))
    yield server
    server.close()


def endpoint(url: str, node: str) -> dict[str, Any]:
    return {"url": url, "node": node, "pod": "", "ready": True, "role": ""}


def seen(cluster: Cluster, *endpoints: dict[str, Any]) -> None:
    item = {**QWEN, "endpoints": list(endpoints), "model": "", "picker": "", "note": ""}
    Discovery.objects.create(cluster=cluster, listed_at=timezone.now(), adoptable=[item])


def adopt(pool: Pool, cluster: Cluster, **changes: Any) -> Any:
    source = services.EngineSource(*QWEN.values())
    ask = {"source": source, "actor": make_admin()} | changes
    return services.adopt_engines(pool_id=pool.pk, cluster_id=cluster.pk, **ask)


def test_an_engine_behind_an_inference_pool_is_routed_to_and_nothing_is_written(
    cluster: Any, tmp_path: Path, engine: Boundary
) -> None:
    cluster.write_credentials(tmp_path / "lab")
    pool = make_pool()
    with override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)):
        node = make_fleet_node(accelerators=1, kind="kubernetes")
        Cluster.objects.filter(pk=node.cluster_id).update(connection_reference="lab")
        _run_by_somebody_else(cluster, node.hostname, urlsplit(engine.url).port)
        discover_cluster(cluster_id=node.cluster_id)
        found = adopt(pool, node.cluster)
        plan = make_applying(pool, node, role="both")

        deadline = time.monotonic() + 30
        while plan.state == ChangePlan.State.APPLYING and time.monotonic() < deadline:
            services.reconcile_pool(pool_id=pool.pk, patience_seconds=0.5)
            plan.refresh_from_db()
        clusters.forget_client(node.cluster_id)

    assert ([row.desired["url"] for row in found.workloads], found.skipped) == ([engine.url], [])
    assert plan.state == "succeeded", plan.outcome
    assert plan.diff[0]["target"] == "static"
    assert Endpoint.objects.get(state="ready").url == engine.url
    workload = Workload.objects.get()
    assert (workload.target, workload.desired["manifests"]) == ("static", [])
    assert cluster.writes == []


def _run_by_somebody_else(cluster: Any, hostname: str, port: int | None) -> None:
    """A Pod and an InferencePool over it, made by others."""
    cluster.add_node(hostname, "amd")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "qwen-0", "namespace": "ml", "labels": {"app": "qwen"}},
        "spec": {"nodeName": hostname, "containers": [{"name": "e", "image": "vllm"}]},
    }  # fmt: skip
    cluster.create(pod)
    ready = [{"type": "Ready", "status": "True"}]
    status = {"phase": "Running", "podIP": "127.0.0.1", "conditions": ready}
    cluster.set_status("v1", "Pod", "qwen-0", status, "ml")
    cluster.create(
        {
            "apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
            "metadata": {"name": "qwen", "namespace": "ml"},
            "spec": {
                "selector": {"matchLabels": {"app": "qwen"}}, "targetPorts": [{"number": port}],
                "endpointPickerRef": {"name": "epp", "port": {"number": 9002}},
            },
        }
    )  # fmt: skip


def test_each_address_takes_one_accelerator_and_a_second_time_changes_nothing() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=2, kind="kubernetes")
    host = node.hostname
    seen(node.cluster, *(endpoint(f"http://10.0.0.{n}:8000", host) for n in (1, 2, 3)))

    first, second = adopt(pool, node.cluster), adopt(pool, node.cluster)

    assert [row.accelerator.slot for row in first.workloads] == [0, 1]
    assert [row.pk for row in second.workloads] == [row.pk for row in first.workloads]
    assert (
        first.skipped
        == second.skipped
        == [{"url": "http://10.0.0.3:8000", "node": host, "why": "no-accelerator"}]
    )


def test_an_address_of_an_unknown_node_or_of_another_pool_is_left_alone() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1, kind="kubernetes")
    other = make_pool(slug="other", model=pool.model)
    seen(node.cluster, endpoint("http://10.0.0.1:8000", node.hostname), endpoint("http://b", "x"))
    adopt(other, node.cluster)

    found = adopt(pool, node.cluster)

    assert [each["why"] for each in found.skipped] == ["other-pool", "unknown-node"]
    assert found.workloads == []


def test_what_no_discovery_saw_and_who_may_not_are_refused() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1, kind="kubernetes")

    with pytest.raises(AdoptableUnknownError, match="ml/qwen"):
        adopt(pool, node.cluster)
    with pytest.raises(NotPermittedError):
        adopt(pool, node.cluster, actor=make_ben())
