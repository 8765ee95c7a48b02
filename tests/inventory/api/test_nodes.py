"""Nodes over REST: same queries at 50 and 200, decisions, problems, and nothing for Ben."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEntry
from inventory import services
from inventory.discovery.agent import write_report
from inventory.models import Accelerator, Node
from tests.factories import make_api_client, make_ben, make_olga, make_user
from tests.inventory.factories import found_node, make_cluster, make_model, make_node

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def post(client: APIClient, path: str, body: Any = None) -> Any:
    key = f"key-{len(connection.queries_log)}-{AuditEntry.objects.count()}-{path[-12:]}"
    key = "".join(letter if letter.isalnum() else "-" for letter in key)
    return client.post(
        f"/api/v1/{path}", body or {"change_reason": "test"}, format="json",
        headers={"Idempotency-Key": key},
    )  # fmt: skip


def hostnames(client: APIClient, query: str = "") -> list[str]:
    return [item["hostname"] for item in client.get(f"/api/v1/nodes{query}").json()["items"]]


def test_a_node_says_where_it_is_what_it_holds_and_how_it_is(client: APIClient) -> None:
    node = make_node(hostname="gpu-kr-07", accelerators=8, tags=["gold"])
    services.record_observation(cluster_id=node.cluster_id, found=found_node(node))

    body = client.get(f"/api/v1/nodes/{node.pk}").json()

    assert (body["hostname"], body["vendor"], body["model"]) == ("gpu-kr-07", "amd", "amd-mi325x")
    assert (body["accelerator_count"], body["healthy_accelerators"]) == (8, 8)
    assert (body["state"], body["health"], body["health_reason"]) == ("ready", "healthy", "")
    assert (body["jurisdiction"], body["tags"]) == ("KR", ["gold"])
    assert body["links"]["accelerators"] == f"/api/v1/accelerators?node={node.pk}"


def test_a_node_is_found_by_its_hostname(client: APIClient) -> None:
    node = make_node(hostname="gpu-kr-07")

    assert client.get("/api/v1/nodes/gpu-kr-07").json()["id"] == str(node.pk)


def test_stale_health_is_unknown_over_the_api(client: APIClient) -> None:
    node = make_node()
    services.record_observation(cluster_id=node.cluster_id, found=found_node(node))
    Node.objects.update(observed_at=timezone.now() - timedelta(minutes=11))

    body = client.get("/api/v1/nodes?health=unknown").json()["items"]

    assert [(item["health"], item["health_reason"]) for item in body] == [("unknown", "stale")]


def test_a_list_needs_the_same_queries_at_50_and_at_200_rows(client: APIClient) -> None:
    cluster = make_cluster()

    def queries_for(count: int) -> int:
        for _ in range(count - Node.objects.count()):
            make_node(cluster=cluster)
        with CaptureQueriesContext(connection) as queries:
            body = client.get("/api/v1/nodes?page_size=1000").json()
        assert len(body["items"]) == count
        return len(queries)

    client.get("/api/v1/nodes")
    assert queries_for(50) == queries_for(200)


def test_filters(client: APIClient) -> None:
    seoul = make_cluster(slug="seoul-1")
    make_node(hostname="gpu-1", cluster=seoul, tags=["gold"])
    nvidia = make_model(slug="nvidia-l4", vendor="nvidia", name="L4")
    make_node(hostname="gpu-2", model=nvidia, state="cordoned")
    make_node(hostname="gpu-3", state="retired", retired_at=timezone.now())

    assert hostnames(client) == ["gpu-1", "gpu-2"]
    assert hostnames(client, "?state=retired") == ["gpu-3"]
    assert hostnames(client, "?vendor=nvidia") == ["gpu-2"]
    assert hostnames(client, "?cluster=seoul-1") == ["gpu-1"]
    assert hostnames(client, f"?site={seoul.site.slug}") == ["gpu-1"]
    assert hostnames(client, "?model=nvidia-l4") == ["gpu-2"]
    assert hostnames(client, "?tag=gold") == ["gpu-1"]
    assert hostnames(client, "?q=PU-2") == ["gpu-2"]
    assert hostnames(client, "?q=gpu-1-1") == ["gpu-1"]
    assert hostnames(client, "?sort=-hostname") == ["gpu-2", "gpu-1"]


@pytest.mark.parametrize("query", ["?vendr=amd", "?state=lost", "?sort=colour"])
def test_a_wrong_filter_is_refused_and_not_ignored(client: APIClient, query: str) -> None:
    response = client.get(f"/api/v1/nodes{query}")

    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"


def test_the_way_of_a_node(client: APIClient) -> None:
    node = make_node()
    path = f"nodes/{node.pk}"

    states = [
        post(client, f"{path}/{step}").json()["state"]
        for step in ("cordon", "uncordon", "drain", "retire")
    ]

    assert states == ["cordoned", "ready", "draining", "retired"]


def test_a_deleted_node_is_retired_and_deleting_again_changes_nothing(client: APIClient) -> None:
    node = make_node()
    reason = {"X-Change-Reason": "sold"}

    first = client.delete(f"/api/v1/nodes/{node.pk}", headers=reason)
    second = client.delete(f"/api/v1/nodes/{node.pk}", headers=reason)

    node.refresh_from_db()
    assert (first.status_code, second.status_code, node.state) == (204, 204, "retired")
    assert client.delete(f"/api/v1/nodes/{node.pk}").status_code == 422


def test_a_dry_run_shows_the_result_and_changes_nothing(client: APIClient) -> None:
    node = make_node()

    response = post(client, f"nodes/{node.pk}/retire?dry_run=true")

    node.refresh_from_db()
    assert (response.json()["dry_run"], response.json()["result"]["state"]) == (True, "retired")
    assert node.state == "ready"


def test_a_step_that_is_not_possible_is_a_problem_with_its_facts(client: APIClient) -> None:
    node = make_node(hostname="gpu-2", state="cordoned")

    response = post(client, f"nodes/{node.pk}/cordon")

    body = response.json()
    assert (response.status_code, body["code"], body["node"]) == (409, "node-not-ready", "gpu-2")
    assert (body["state"], body["allowed_from"]) == ("cordoned", ["ready", "draining"])
    assert "ready, draining" in body["hint"]


def test_a_step_needs_a_reason(client: APIClient) -> None:
    node = make_node()

    response = post(client, f"nodes/{node.pk}/cordon", {"why": "x"})

    assert (response.status_code, response.json()["code"]) == (422, "validation-failed")


def test_a_node_is_added_and_changed(client: APIClient) -> None:
    make_model()
    body = {
        "cluster": str(make_cluster().pk), "hostname": "gpu-9", "model": "amd-mi325x",
        "accelerators": 2, "serials": ["A", "B"],
    }  # fmt: skip

    added = post(client, "nodes", body)
    changed = client.patch(
        added["Location"], {"rack": "B7", "change_reason": "moved"}, format="json"
    )

    assert (added.status_code, added.json()["accelerator_count"]) == (201, 2)
    assert changed.json()["rack"] == "B7"


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        pytest.param({"accelerators": 0}, 422, "node-without-accelerators", id="0"),
        pytest.param({"model": "acme-1"}, 422, "unknown-accelerator-model", id="model"),
        pytest.param({"serials": ["A", "A"]}, 422, "value-not-allowed", id="serial-twice"),
        pytest.param({"state": "retired"}, 422, "validation-failed", id="state"),
        pytest.param(
            {"cluster": "0196b1de-0000-7000-8000-000000000000"},
            422,
            "validation-failed",
            id="cluster",
        ),
    ],
)
def test_what_cannot_be_a_node_is_a_problem(
    client: APIClient, changes: dict[str, Any], status: int, code: str
) -> None:
    make_model()
    body = {
        "cluster": str(make_cluster().pk), "hostname": "gpu-9", "model": "amd-mi325x",
        "accelerators": 2,
    }  # fmt: skip

    response = post(client, "nodes", body | changes)

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert (Node.objects.count(), Accelerator.objects.count()) == (0, 0)


def test_a_report_of_the_agent_is_taken_in(client: APIClient) -> None:
    node = make_node()

    response = post(client, f"nodes/{node.pk}/report", write_report(found_node(node)))

    assert response.status_code == 202
    assert client.get(f"/api/v1/nodes/{node.pk}").json()["health"] == "healthy"


def test_the_history_of_a_node(client: APIClient) -> None:
    node = make_node()
    post(client, f"nodes/{node.pk}/cordon", {"change_reason": "fan"})

    (moment,) = client.get(f"/api/v1/nodes/{node.pk}/timeline").json()["items"]

    assert (moment["what"], moment["reason"]) == ("node.cordoned", "fan")


def test_ben_sees_no_node_and_a_reader_changes_none() -> None:
    node = make_node()
    ben = make_api_client(make_ben())
    reader = make_api_client(make_user(None, "readonly"))

    assert ben.get("/api/v1/nodes").status_code == 403
    assert ben.get(f"/api/v1/nodes/{node.pk}").status_code in {403, 404}
    assert post(ben, f"nodes/{node.pk}/cordon").status_code == 404
    assert reader.get(f"/api/v1/nodes/{node.pk}").status_code == 200
    assert post(reader, f"nodes/{node.pk}/cordon").json()["code"] == "not-permitted"
    assert make_api_client().get("/api/v1/nodes").status_code == 401


def test_an_agent_speaks_of_its_own_node_only(client: APIClient) -> None:
    node, other = make_node(), make_node()

    answer = post(client, f"nodes/{node.pk}/report", write_report(found_node(other)))

    assert (answer.status_code, answer.json()["code"]) == (422, "report-refused")
    assert other.hostname in answer.json()["detail"]
    other.refresh_from_db()
    assert other.observed_at is None


@pytest.mark.parametrize(
    ("wrong", "code", "sentence"),
    [
        ({"hostname": "=cmd|x"}, "value-not-allowed", "'=cmd|x' is not a hostname"),
        ({"hostname": "a b/c"}, "value-not-allowed", "the first and the last"),
        ({"serials": ["A", "A"]}, "value-not-allowed", "The serial A is there twice"),
        ({"serials": ["A", "B", "C"]}, "value-not-allowed", "3 serials for 2 accelerators"),
        ({"accelerators": 0}, "node-without-accelerators", "would have 0 accelerators"),
        ({"accelerators": 10**30}, "malformed-json", "more than 64 bits"),
        ({"cluster": "nowhere"}, "validation-failed", "There is no cluster 'nowhere' here"),
        ({"cluster": 5}, "validation-failed", "Give the id or the name as text"),
        ({"state": "retired"}, "validation-failed", "Allowed: planned, provisioning, ready."),
    ],
)
def test_a_node_that_cannot_be_says_why(
    client: APIClient, wrong: dict[str, Any], code: str, sentence: str
) -> None:
    make_model()
    body = {
        "cluster": make_cluster().slug, "hostname": "gpu-1", "model": "amd-mi325x",
        "accelerators": 2,
    }  # fmt: skip

    answer = post(client, "nodes", body | wrong)

    assert (answer.json()["code"], Node.objects.count()) == (code, 0)
    assert sentence in answer.json()["detail"]


def test_the_reason_of_a_node_that_is_added_is_kept(client: APIClient) -> None:
    make_model()
    body = {
        "cluster": make_cluster().slug, "hostname": "gpu-1", "model": "amd-mi325x",
        "accelerators": 1, "change_reason": "order 17",
    }  # fmt: skip

    assert post(client, "nodes", body).status_code == 201

    assert AuditEntry.objects.get(action="node.create").reason == "order 17"


def test_the_speed_of_a_nodes_storage_is_entered_with_a_reason(client: APIClient) -> None:
    node = make_node()
    body = {"storage_bytes_per_second": 3 * 10**9, "change_reason": "data sheet"}

    changed = client.patch(f"/api/v1/nodes/{node.pk}", body, format="json")
    refused = client.patch(
        f"/api/v1/nodes/{node.pk}", body | {"storage_bytes_per_second": 0}, format="json"
    )

    assert changed.json()["storage_bytes_per_second"] == 3 * 10**9
    assert refused.status_code == 422
