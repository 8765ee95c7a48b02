"""The other ring's cluster, tried against a fake one that it meets over HTTP only."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.fake.cluster import FakeCluster
from tests.kubernetes.fake.kubelets import PodRun
from tests.kubernetes.real import RealCluster
from tests.kubernetes.test_controllers import condition_of, deployment

pytestmark = pytest.mark.fake_only


@pytest.fixture
def distant() -> Iterator[FakeCluster]:
    """A cluster with controllers and a scheduler, whose nodes somebody else reports for."""
    with FakeCluster(working=True) as fake:
        fake.controllers.with_kubelets = False
        yield fake


@pytest.fixture
def kubeconfig(distant: FakeCluster, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    context = {"cluster": "lab", "user": "tester"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": distant.url}}],
        "contexts": [{"name": "lab", "context": context}],
        "users": [{"name": "tester", "user": {"token": "t"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_a_deployment_starts_fails_and_recovers_on_nodes_without_machines(
    kubeconfig: str,
) -> None:
    with RealCluster(kubeconfig) as cluster:
        space = cluster.namespace()
        cluster.add_node("gpu-1")
        cluster.engine_for = lambda pod: PodRun(ready=bool(pod["status"]["podIP"]))
        cluster.create(deployment(space))

        def state() -> str | None:
            found = cluster.get("apps/v1", "Deployment", "engine", space) or {"status": {}}
            return condition_of(found, "Available").get("status")

        cluster.until(lambda: state() == "True")
        (pod,) = cluster.all("v1", "Pod", space)
        cluster.kubelets.fail(space, pod["metadata"]["name"], "OOMKilled")
        cluster.until(lambda: state() == "False")
        cluster.kubelets.recover(space, pod["metadata"]["name"])
        cluster.until(lambda: state() == "True")


def test_it_deletes_what_it_made_and_nothing_else(distant: FakeCluster, kubeconfig: str) -> None:
    other = distant.namespace("somebody")
    distant.add_node("somebodys-node")

    with RealCluster(kubeconfig) as cluster:
        cluster.add_node("gpu-1")
        space = cluster.namespace()
        cluster.create(deployment(space))
        cluster.settle()

    assert distant.get("v1", "Namespace", space) is None
    assert distant.get("v1", "Namespace", other)
    names = [node["metadata"]["name"] for node in distant.all("v1", "Node")]
    assert names == ["somebodys-node"]
