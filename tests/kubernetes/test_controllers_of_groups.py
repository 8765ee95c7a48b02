"""The fake's controllers over more than a Deployment: owners, claims, groups over nodes, Jobs."""

import pytest

from tests.kubernetes.fake.cluster import FakeCluster
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.kubelets import PodRun
from tests.kubernetes.fake.nodes import resource_slice
from tests.kubernetes.test_controllers import Object, condition_of, deployment, pods_of

pytestmark = pytest.mark.fake_only


@pytest.fixture
def namespace(cluster: FakeCluster) -> str:
    cluster.add_node("gpu-1")
    cluster.add_node("gpu-2")
    return cluster.namespace()


def test_a_foreground_deletion_ends_after_what_it_owns(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.create(deployment(namespace))
    cluster.settle()
    kind = kind_of("apps/v1", "Deployment")

    cluster.api.delete(kind, namespace, "engine", {"propagationPolicy": "Foreground"})
    held = cluster.get("apps/v1", "Deployment", "engine", namespace) or {}
    cluster.settle()

    assert held["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert cluster.get("apps/v1", "Deployment", "engine", namespace) is None
    assert pods_of(cluster, namespace) == []


def test_devices_by_claim_run_out(cluster: FakeCluster, namespace: str) -> None:
    driver = "gpu.nvidia.com"
    memory = {"memory": {"value": "81559Mi"}}
    devices: list[Object] = [{"name": f"gpu-{n}", "capacity": memory} for n in range(2)]
    cluster.create(resource_slice("gpu-1-gpus", "gpu-1", driver, devices))
    cluster.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": driver},
            "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}]},
        }
    )
    large = f"device.capacity['{driver}'].memory.compareTo(quantity('70Gi')) >= 0"
    exactly = {"deviceClassName": driver, "selectors": [{"cel": {"expression": large}}]}
    cluster.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one-gpu", "namespace": namespace},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
        }
    )
    item = deployment(namespace, replicas=3)
    inside = item["spec"]["template"]["spec"]
    inside["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": "one-gpu"}]
    inside["containers"][0]["resources"] = {"claims": [{"name": "g"}]}
    cluster.create(item)

    cluster.settle()

    placed = [p for p in pods_of(cluster, namespace) if p["spec"].get("nodeName")]
    (waiting,) = [p for p in pods_of(cluster, namespace) if not p["spec"].get("nodeName")]
    assert len(placed) == 2
    assert "cannot allocate all claims" in condition_of(waiting, "PodScheduled")["message"]


def test_a_group_over_two_nodes_is_ready_as_a_whole_and_starts_again_as_a_whole(
    cluster: FakeCluster, namespace: str
) -> None:
    container = {
        "name": "s",
        "image": "vllm:1",
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }
    template = {"metadata": {"labels": {"app": "engine"}}, "spec": {"containers": [container]}}
    cluster.create(
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "large", "namespace": namespace},
            "spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
        }
    )
    cluster.settle()
    first = {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods_of(cluster, namespace)}
    ready = cluster.get("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "large", namespace) or {}

    cluster.kubelets.fail(namespace, "large-0-1")
    cluster.tick()
    cluster.kubelets.recover(namespace, "large-0-1")
    cluster.settle()

    second = {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods_of(cluster, namespace)}
    assert ready["status"]["readyReplicas"] == 1
    assert condition_of(ready, "Available")["status"] == "True"
    assert set(first) == set(second) == {"large-0", "large-0-1"}
    assert not set(first.values()) & set(second.values())


def test_a_job_whose_pods_fail_is_tried_again_and_then_given_up(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.engine_for = lambda pod: PodRun(fail="OOMKilled")
    container = {"name": "s", "image": "copy:1"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    cluster.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "copy", "namespace": namespace},
            "spec": {"template": template, "backoffLimit": 1},
        }
    )

    cluster.settle()

    job = cluster.get("batch/v1", "Job", "copy", namespace) or {}
    assert condition_of(job, "Failed")["reason"] == "BackoffLimitExceeded"
    ended = [
        p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
        for p in cluster.all("v1", "Pod", namespace)
    ]
    assert ended == [137, 137]


def test_a_job_completes(cluster: FakeCluster, namespace: str) -> None:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "s", "image": "copy:1"}]}
    }
    cluster.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "copy", "namespace": namespace},
            "spec": {"template": template},
        }
    )

    cluster.settle()

    job = cluster.get("batch/v1", "Job", "copy", namespace) or {}
    assert condition_of(job, "Complete")["status"] == "True"


def test_the_controllers_can_work_in_a_thread_of_their_own() -> None:
    with FakeCluster(working=True) as cluster:
        cluster.add_node("gpu-1")
        space = cluster.namespace()
        cluster.create(deployment(space))
        with cluster.api.store.changed:
            assert cluster.api.store.changed.wait_for(
                lambda: any(
                    condition_of(pod, "Ready").get("status") == "True"
                    for pod in pods_of(cluster, space)
                ),
                timeout=20,
            )
