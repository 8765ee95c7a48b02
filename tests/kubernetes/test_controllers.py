"""The fake's controllers, scheduler and kubelets do what a cluster does, as far as we rely on it.

`cluster.settle()` lets them work until nothing changes; time is moved by `cluster.advance`.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.kubernetes.fake.cluster import FakeCluster
from tests.kubernetes.fake.kubelets import PodRun

pytestmark = pytest.mark.fake_only
Object = dict[str, Any]


def deployment(namespace: str, name: str = "engine", **spec: Any) -> Object:
    template = spec.pop("template", {})
    count, gpu = spec.pop("count", "1"), spec.pop("gpu", "nvidia.com/gpu")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [
                        {
                            "name": "server",
                            "image": "vllm/vllm-openai:v0.11.0",
                            "ports": [{"containerPort": 8000, "name": "http"}],
                            "resources": {"limits": {gpu: count}},
                        }
                    ]
                }
                | template,
            },
        }
        | spec,
    }


def pods_of(cluster: FakeCluster, namespace: str, name: str = "engine") -> list[Object]:
    found = cluster.all("v1", "Pod", namespace)
    return [pod for pod in found if pod["metadata"]["labels"].get("app") == name]


def condition_of(item: Object, kind: str) -> Object:
    found = item["status"].get("conditions") or []
    return next((entry for entry in found if entry["type"] == kind), {})


@pytest.fixture
def namespace(cluster: FakeCluster) -> str:
    cluster.add_node("gpu-1")
    cluster.add_node("gpu-2")
    return cluster.namespace()


def test_a_deployment_becomes_available_on_the_node_it_names(
    cluster: FakeCluster, namespace: str
) -> None:
    pinned = {"nodeSelector": {"kubernetes.io/hostname": "gpu-2"}}
    cluster.create(deployment(namespace, template=pinned))

    cluster.settle()

    found = cluster.get("apps/v1", "Deployment", "engine", namespace) or {}
    (pod,) = pods_of(cluster, namespace)
    assert found["status"]["observedGeneration"] == 1
    assert found["status"]["availableReplicas"] == 1
    assert condition_of(found, "Available")["status"] == "True"
    assert pod["spec"]["nodeName"] == "gpu-2"
    assert pod["status"]["podIP"].startswith("127.")


def test_status_lags_behind_the_wish_until_the_controller_worked(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.create(deployment(namespace))
    cluster.settle()

    changed = cluster.change(
        "apps/v1",
        "Deployment",
        "engine",
        lambda item: item["spec"].update(replicas=2),
        namespace=namespace,
    )

    assert changed["metadata"]["generation"] == 2
    assert changed["status"]["observedGeneration"] == 1


def test_a_pod_that_fits_nowhere_says_why_and_is_placed_when_there_is_room(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.create(deployment(namespace, replicas=2, count="8"))
    cluster.create(deployment(namespace, "late"))
    cluster.settle()
    (late,) = pods_of(cluster, namespace, "late")
    refusal = condition_of(late, "PodScheduled")

    cluster.delete("apps/v1", "Deployment", "engine", namespace)
    cluster.settle()

    assert refusal["reason"] == "Unschedulable"
    assert refusal["message"].startswith("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    told = [event["reason"] for event in cluster.all("v1", "Event", namespace)]
    assert told == ["FailedScheduling"]
    (late,) = pods_of(cluster, namespace, "late")
    assert condition_of(late, "Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("fail", "waiting", "last"),
    [
        ("CrashLoopBackOff", "CrashLoopBackOff", "Error"),
        ("OOMKilled", "CrashLoopBackOff", "OOMKilled"),
        ("ImagePullBackOff", "ImagePullBackOff", None),
    ],
)
def test_a_failing_container_says_how(
    cluster: FakeCluster, namespace: str, fail: str, waiting: str, last: str | None
) -> None:
    cluster.engine_for = lambda pod: PodRun(fail=fail)
    cluster.create(deployment(namespace))

    cluster.settle()

    (pod,) = pods_of(cluster, namespace)
    (status,) = pod["status"]["containerStatuses"]
    assert status["state"]["waiting"]["reason"] == waiting
    ended = status.get("lastState", {}).get("terminated", {})
    assert ended.get("reason") == last
    assert ended.get("exitCode") == (None if last is None else (137 if last == "OOMKilled" else 1))
    found = cluster.get("apps/v1", "Deployment", "engine", namespace) or {}
    assert condition_of(found, "Available")["status"] == "False"


def test_a_container_that_crashed_and_runs_again_has_one_restart_more(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.create(deployment(namespace))
    cluster.settle()
    name = pods_of(cluster, namespace)[0]["metadata"]["name"]

    cluster.kubelets.fail(namespace, name, "OOMKilled")
    cluster.settle()
    cluster.kubelets.recover(namespace, name)
    cluster.settle()

    (pod,) = pods_of(cluster, namespace)
    (status,) = pod["status"]["containerStatuses"]
    assert (status["restartCount"], status["ready"]) == (1, True)


def test_a_late_start_becomes_ready_when_its_time_has_come(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.engine_for = lambda pod: PodRun(ready_after=600)
    cluster.create(deployment(namespace))
    cluster.settle()
    (before,) = pods_of(cluster, namespace)

    cluster.advance(600)
    cluster.settle()

    (after,) = pods_of(cluster, namespace)
    assert condition_of(before, "Ready")["status"] == "False"
    assert condition_of(after, "Ready")["status"] == "True"


def test_a_rollout_that_does_not_move_exceeds_its_deadline(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.missing_images.add("vllm/vllm-openai:v0.11.0")
    cluster.create(deployment(namespace, progressDeadlineSeconds=60))
    cluster.settle()

    cluster.advance(61)
    cluster.settle()

    found = cluster.get("apps/v1", "Deployment", "engine", namespace) or {}
    progressing = condition_of(found, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")


def test_recreate_ends_the_old_pod_before_the_new_one_starts(
    cluster: FakeCluster, namespace: str
) -> None:
    most = 0
    cluster.create(deployment(namespace, strategy={"type": "Recreate"}, count="8"))
    cluster.settle()
    old = pods_of(cluster, namespace)[0]["metadata"]["uid"]

    def new_image(item: Object) -> None:
        item["spec"]["template"]["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.12.0"

    cluster.change("apps/v1", "Deployment", "engine", new_image, namespace=namespace)
    while cluster.tick():
        most = max(most, len(pods_of(cluster, namespace)))

    (pod,) = pods_of(cluster, namespace)
    assert most == 1
    assert pod["metadata"]["uid"] != old
    assert pod["spec"]["containers"][0]["image"] == "vllm/vllm-openai:v0.12.0"


def test_a_rolling_update_keeps_enough_pods_ready(cluster: FakeCluster, namespace: str) -> None:
    cluster.create(deployment(namespace, replicas=4))
    cluster.settle()
    least = 4

    def new_image(item: Object) -> None:
        item["spec"]["template"]["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.12.0"

    cluster.change("apps/v1", "Deployment", "engine", new_image, namespace=namespace)
    while cluster.tick():
        ready = [p for p in pods_of(cluster, namespace) if condition_of(p, "Ready").get("status")]
        least = min(least, len(ready))

    images = {p["spec"]["containers"][0]["image"] for p in pods_of(cluster, namespace)}
    assert least >= 3
    assert images == {"vllm/vllm-openai:v0.12.0"}
    assert len(pods_of(cluster, namespace)) == 4


def test_a_quota_stops_the_pods_and_the_deployment_says_so(
    cluster: FakeCluster, namespace: str
) -> None:
    hard = {"hard": {"requests.nvidia.com/gpu": "1"}}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus", "namespace": namespace},
            "spec": hard,
        }
    )
    cluster.create(deployment(namespace, count="2"))

    cluster.settle()

    found = cluster.get("apps/v1", "Deployment", "engine", namespace) or {}
    failure = condition_of(found, "ReplicaFailure")
    assert failure["reason"] == "FailedCreate"
    assert "exceeded quota: gpus, requested: requests.nvidia.com/gpu=2" in failure["message"]


def test_a_lost_nodes_pods_are_not_ready_at_once_and_replaced_after_five_minutes(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.create(deployment(namespace))
    cluster.settle()
    (pod,) = pods_of(cluster, namespace)

    cluster.lose_node(pod["spec"]["nodeName"])
    cluster.settle()
    (silent,) = pods_of(cluster, namespace)
    cluster.advance(301)
    cluster.settle()

    node = cluster.get("v1", "Node", pod["spec"]["nodeName"]) or {}
    assert condition_of(node, "Ready")["status"] == "Unknown"
    assert condition_of(silent, "Ready")["status"] == "False"
    by_uid = {p["metadata"]["uid"]: p for p in pods_of(cluster, namespace)}
    assert by_uid.pop(pod["metadata"]["uid"])["metadata"]["deletionTimestamp"]
    (new,) = by_uid.values()
    assert new["spec"]["nodeName"] != pod["spec"]["nodeName"]


def test_a_probe_asks_the_engine_at_the_pods_address(cluster: FakeCluster, namespace: str) -> None:
    class Engine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    cluster.engine_for = lambda pod: PodRun(ready="probe")
    item = deployment(namespace)
    container = item["spec"]["template"]["spec"]["containers"][0]
    container["readinessProbe"] = {"httpGet": {"path": "/health", "port": "http"}}
    cluster.create(item)
    cluster.settle()
    (before,) = pods_of(cluster, namespace)

    with ThreadingHTTPServer((before["status"]["podIP"], 8000), Engine) as engine:
        threading.Thread(target=engine.serve_forever, args=(0.05,), daemon=True).start()
        cluster.until(
            lambda: condition_of(pods_of(cluster, namespace)[0], "Ready")["status"] == "True"
        )
        engine.shutdown()

    assert condition_of(before, "Ready")["status"] == "False"


def test_endpoint_slices_follow_readiness(cluster: FakeCluster, namespace: str) -> None:
    ready = [False]
    cluster.engine_for = lambda pod: PodRun(ready=lambda: ready[0])
    service = {"selector": {"app": "engine"}, "ports": [{"port": 80, "targetPort": "http"}]}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "engine", "namespace": namespace},
            "spec": service,
        }
    )
    cluster.create(deployment(namespace))
    cluster.settle()
    (before,) = cluster.all("discovery.k8s.io/v1", "EndpointSlice", namespace)

    ready[0] = True
    cluster.settle()

    (after,) = cluster.all("discovery.k8s.io/v1", "EndpointSlice", namespace)
    assert [e["conditions"]["ready"] for e in before["endpoints"]] == [False]
    assert [e["conditions"]["ready"] for e in after["endpoints"]] == [True]
    assert after["ports"] == [{"name": "", "protocol": "TCP", "port": 8000}]


def test_deleting_a_deployment_ends_its_pods_and_tells_the_test(
    cluster: FakeCluster, namespace: str
) -> None:
    begun: list[str] = []
    ended: list[str] = []
    cluster.engine_for = lambda pod: begun.append(pod["status"]["podIP"])
    cluster.engine_stopped = lambda pod: ended.append(pod["status"]["podIP"])
    cluster.create(deployment(namespace))
    cluster.settle()

    cluster.delete("apps/v1", "Deployment", "engine", namespace)
    cluster.settle()

    assert pods_of(cluster, namespace) == []
    assert cluster.all("apps/v1", "ReplicaSet", namespace) == []
    assert begun == ended
    assert len(begun) == 1


def test_a_pod_that_takes_its_time_to_end_stays_until_it_has_ended(
    cluster: FakeCluster, namespace: str
) -> None:
    cluster.engine_for = lambda pod: PodRun(ends_after=30)
    cluster.create(deployment(namespace))
    cluster.settle()

    cluster.delete("apps/v1", "Deployment", "engine", namespace)
    cluster.settle()
    (ending,) = pods_of(cluster, namespace)
    cluster.advance(30)
    cluster.settle()

    assert ending["metadata"]["deletionTimestamp"]
    assert pods_of(cluster, namespace) == []


def test_a_waiting_pod_with_a_finalizer_goes_when_it_is_let_go(
    cluster: FakeCluster, namespace: str
) -> None:
    meta = {"name": "held", "namespace": namespace, "finalizers": ["lab.example/hold"]}
    pod = deployment(namespace, count="64")["spec"]["template"]
    cluster.create({"apiVersion": "v1", "kind": "Pod"} | pod | {"metadata": meta})
    cluster.settle()

    cluster.delete("v1", "Pod", "held", namespace)
    cluster.settle()
    held = cluster.get("v1", "Pod", "held", namespace)
    cluster.change(
        "v1", "Pod", "held", lambda item: item["metadata"].pop("finalizers"), namespace=namespace
    )

    assert held
    assert cluster.get("v1", "Pod", "held", namespace) is None
