# ruff: noqa: S310 - every address is this test's own server
"""What the fake API server does on a test's demand: faults, silence, cut and expired watches."""

import http.client
import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from tests.kubernetes.fake.cluster import FakeCluster

pytestmark = pytest.mark.fake_only
SECONDS = 5


@pytest.fixture
def core(cluster: FakeCluster) -> Any:
    with client.ApiClient(client.Configuration(host=cluster.url)) as api:
        yield client.CoreV1Api(api)


def ask(cluster: FakeCluster, path: str, method: str = "GET", body: Any = None) -> Any:
    """Status, headers and body of a raw request."""
    raw = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(cluster.url + path, raw, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, json.load(error)


def test_a_busy_server_says_when_to_come_again_and_then_answers(cluster: FakeCluster) -> None:
    cluster.faults.answer(429, "too many", retry_after=3, times=1)

    busy, headers, body = ask(cluster, "/api/v1/nodes")
    after, _, _ = ask(cluster, "/api/v1/nodes")

    assert (busy, headers["Retry-After"], body["reason"]) == (429, "3", "TooManyRequests")
    assert body["details"]["retryAfterSeconds"] == 3
    assert after == 200


def test_a_fault_meets_only_what_its_path_names(cluster: FakeCluster) -> None:
    cluster.faults.answer(500, "etcd is away", path="deployments")

    assert ask(cluster, "/apis/apps/v1/deployments")[0] == 500
    assert ask(cluster, "/api/v1/nodes")[0] == 200


def test_a_black_hole_takes_requests_and_never_answers(cluster: FakeCluster) -> None:
    cluster.faults.black_hole()
    connection = http.client.HTTPConnection(cluster.url.removeprefix("http://"), timeout=0.2)

    connection.request("GET", "/version")
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()

    cluster.faults.clear()
    assert ask(cluster, "/version")[0] == 200


def test_a_webhook_refuses_writes_but_no_reads_and_no_reviews(cluster: FakeCluster) -> None:
    cluster.faults.webhook_denies("images must be signed")
    body = {"metadata": {"name": "a"}}

    status, _, said = ask(cluster, "/api/v1/namespaces", "POST", body)

    assert status == 403
    assert said["message"].endswith("denied the request: images must be signed")
    assert ask(cluster, "/api/v1/namespaces")[0] == 200
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "nodes"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert ask(cluster, path, "POST", review)[2]["status"]["allowed"]


def test_a_right_that_is_missing_is_refused_and_known_in_advance(cluster: FakeCluster) -> None:
    cluster.rights.deny("list", "pods")
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    allowed = ask(cluster, path, "POST", review)[2]["status"]["allowed"]
    status, _, said = ask(cluster, "/api/v1/pods")

    assert (allowed, status, said["reason"]) == (False, 403, "Forbidden")
    assert 'cannot list resource "pods" in API group ""' in said["message"]


def test_a_caller_without_the_token_is_nobody() -> None:
    with FakeCluster(token="secret") as cluster:
        assert ask(cluster, "/version")[0] == 401


def test_kinds_that_are_not_installed_are_not_there_until_they_are() -> None:
    path = "/apis/leaderworkerset.x-k8s.io/v1"
    with FakeCluster(missing=["lws"]) as cluster:
        before = ask(cluster, path)[0]
        cluster.install("lws")

        assert (before, ask(cluster, path)[0]) == (404, 200)


def test_writes_are_recorded_with_their_manager_and_dry_runs_are_not(
    cluster: FakeCluster,
) -> None:
    body = {"metadata": {"name": "a"}}
    ask(cluster, "/api/v1/namespaces?dryRun=All&fieldManager=consort", "POST", body)
    ask(cluster, "/api/v1/namespaces?fieldManager=consort", "POST", body)
    ask(cluster, "/api/v1/namespaces?fieldManager=consort", "POST", body)

    found = [(w.method, w.path, w.manager, w.status, w.changed) for w in cluster.writes]
    assert found == [
        ("POST", "/api/v1/namespaces", "consort", 201, True),
        ("POST", "/api/v1/namespaces", "consort", 409, False),
    ]


def test_an_apply_that_changes_nothing_writes_nothing(cluster: FakeCluster) -> None:
    space = cluster.namespace()
    path = f"/api/v1/namespaces/{space}/configmaps/a?fieldManager=consort"
    meta = {"name": "a", "namespace": space}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}
    headers = {"Content-Type": "application/apply-patch+yaml"}
    versions = []
    for _ in range(2):
        raw = json.dumps(body).encode()
        request = urllib.request.Request(cluster.url + path, raw, headers, method="PATCH")
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            versions.append(json.load(answer)["metadata"]["resourceVersion"])

    assert versions[0] == versions[1]
    assert [write.changed for write in cluster.writes] == [True, False]


def test_a_namespace_that_ends_takes_nothing_new(cluster: FakeCluster) -> None:
    space = cluster.namespace()
    cluster.delete("v1", "Namespace", space)

    path = f"/api/v1/namespaces/{space}/configmaps"
    status, _, said = ask(cluster, path, "POST", {"metadata": {"name": "a"}})

    assert (status, said["reason"]) == (403, "Forbidden")
    assert said["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    cluster.settle()
    assert cluster.get("v1", "Namespace", space) is None


def test_a_watch_from_before_the_log_was_compacted_gets_410(
    cluster: FakeCluster, core: Any
) -> None:
    before = core.list_node().metadata.resource_version
    cluster.expire()

    with pytest.raises(ApiException) as expired:
        list(watch.Watch().stream(core.list_node, resource_version=before, timeout_seconds=2))

    assert expired.value.status == 410


def test_a_continue_token_expires(cluster: FakeCluster) -> None:
    for number in range(3):
        cluster.add_node(f"gpu-{number}")
    token = ask(cluster, "/api/v1/nodes?limit=2")[2]["metadata"]["continue"]

    cluster.expire()

    status, _, said = ask(cluster, f"/api/v1/nodes?limit=2&continue={token}")
    assert (status, said["reason"]) == (410, "Expired")


def test_a_watch_that_is_cut_breaks_off_and_another_one_goes_on(
    cluster: FakeCluster, core: Any
) -> None:
    cluster.add_node("gpu-1")
    stream = core.list_node(watch=True, _preload_content=False)
    first = stream.read_chunked()
    assert b"gpu-1" in next(first)

    cluster.cut_watches()

    with pytest.raises(Exception, match="ended prematurely"):
        list(first)
    cluster.add_node("gpu-2")
    assert {node.metadata.name for node in core.list_node().items} == {"gpu-1", "gpu-2"}


def test_many_callers_at_once_see_each_write_once(cluster: FakeCluster) -> None:
    space = cluster.namespace()
    path = f"/api/v1/namespaces/{space}/configmaps"
    answers: list[int] = []

    def create() -> None:
        answers.append(ask(cluster, path, "POST", {"metadata": {"name": "one"}})[0])

    callers = [threading.Thread(target=create) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(SECONDS)

    assert sorted(answers) == [201] + [409] * 7
