"""Clusters over REST: connections, what was found out about them, tests."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from inventory.models import Cluster
from tests.factories import make_api_client, make_ben, make_olga
from tests.inventory.factories import make_cluster, make_node, make_site

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def post(client: APIClient, path: str, body: dict[str, Any]) -> Any:
    headers = {"Idempotency-Key": f"key-{uuid.uuid4().hex}"}
    return client.post(f"/api/v1/clusters{path}", body, format="json", headers=headers)


def cluster_with(**values: Any) -> Cluster:
    defaults = {"kind": "kubernetes", "connection_reference": "seoul"}
    return make_cluster(**defaults | values)


def test_a_cluster_is_added_to_a_site(client: APIClient) -> None:
    site = make_site(slug="KR-SEO-1")

    response = post(
        client, "", {"slug": "seoul-1", "name": "Seoul 1", "site": str(site.pk), "kind": "local"}
    )

    body = response.json()
    assert (body["site"], body["kind"], body["node_count"]) == ("KR-SEO-1", "local", 0)
    assert body["answered_at"] is None
    assert body["connection"] is None


def test_a_new_connection_is_unknown_and_nothing_is_said_about_it(client: APIClient) -> None:
    body = post(
        client, "",
        {"slug": "seoul-1", "name": "Seoul 1", "site": make_site().slug, "kind": "kubernetes",
         "connection_reference": "seoul", "namespace": "serving"},
    ).json()  # fmt: skip

    assert (body["connection_reference"], body["namespace"]) == ("seoul", "serving")
    assert body["connection"] == "unknown"
    assert (body["version"], body["kinds"], body["missing_kinds"], body["missing_rights"]) == (
        "", None, None, None,
    )  # fmt: skip


def test_what_a_test_found_is_shown_with_what_to_install(client: APIClient) -> None:
    now = timezone.now()
    cluster = cluster_with(
        version="v1.36.2", kinds=[["v1", "Node"]], missing_rights=["list nodes"],
        asked_at=now, answered_at=now, tested_at=now,
    )  # fmt: skip

    body = client.get(f"/api/v1/clusters/{cluster.slug}").json()

    assert body["connection"] == "answers"
    assert body["missing_rights"] == ["list nodes"]
    pools = [kind for kind in body["missing_kinds"] if kind["kind"] == "InferencePool"]
    assert pools == [
        {
            "api_version": "inference.networking.k8s.io/v1", "kind": "InferencePool",
            "install": "Gateway API Inference Extension 1.6.0", "since": "", "needed": False,
        }
    ]  # fmt: skip
    assert "Node" not in {kind["kind"] for kind in body["missing_kinds"]}


def test_a_silent_cluster_says_since_when_and_what_to_do(client: APIClient) -> None:
    now = timezone.now()
    cluster = cluster_with(
        failures=3, retry_at=now + timedelta(seconds=20), asked_at=now,
        error="etcd is away", error_code="cluster-unavailable",
    )  # fmt: skip

    body = client.get(f"/api/v1/clusters/{cluster.slug}").json()

    assert (body["connection"], body["failures"], body["error"]) == ("silent", 3, "etcd is away")
    assert "network policies" in body["advice"]
    korean = client.get(
        f"/api/v1/clusters/{cluster.slug}", headers={"Accept-Language": "ko"}
    ).json()
    assert korean["advice"] != body["advice"]


def test_credentials_that_cannot_be_used_are_told(client: APIClient) -> None:
    cluster = cluster_with(
        error="…", error_code="kubeconfig-runs", error_facts={"key": "exec"}, asked_at=None
    )

    body = client.get(f"/api/v1/clusters/{cluster.slug}").json()

    assert body["connection"] == "unusable"
    assert "ServiceAccount" in body["advice"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"connection_reference": "../etc"}, "value-not-allowed", id="path"),
        pytest.param({"namespace": "a b"}, "value-not-allowed", id="namespace"),
        pytest.param({"token": "abc"}, "validation-failed", id="a-secret-is-never-taken"),
    ],
)
def test_a_cluster_that_cannot_be_is_a_problem(
    client: APIClient, change: dict[str, str], code: str
) -> None:
    body = {
        "slug": "seoul-1", "name": "Seoul 1", "site": make_site().slug, "kind": "kubernetes",
        "connection_reference": "seoul",
    }  # fmt: skip

    response = post(client, "", body | change)

    assert (response.status_code, response.json()["code"]) == (422, code)
    assert not Cluster.objects.exists()


def test_a_connection_is_changed_with_a_reason(client: APIClient) -> None:
    cluster = cluster_with(version="v1.36.2")
    path = f"/api/v1/clusters/{cluster.pk}"
    body = {"connection_reference": "busan"}

    assert client.patch(path, body, format="json").status_code == 422
    response = client.patch(path, body | {"change_reason": "moved"}, format="json")

    assert response.json()["connection_reference"] == "busan"
    assert response.json()["version"] == ""


def test_a_test_is_an_operation(client: APIClient) -> None:
    cluster = cluster_with()

    response = post(client, f"/{cluster.pk}/test-connection", {})

    assert response.status_code == 202
    operation = client.get(response.headers["Location"]).json()
    assert operation["kind"] == "inventory.test-connection"


def test_a_cluster_without_an_api_server_cannot_be_tested(client: APIClient) -> None:
    response = post(client, f"/{make_cluster().pk}/test-connection", {})

    assert (response.status_code, response.json()["code"]) == (409, "cluster-not-testable")


def test_a_list_needs_the_same_queries_at_50_and_at_200_rows(client: APIClient) -> None:
    def queries_for(count: int) -> int:
        for _ in range(count - Cluster.objects.count()):
            make_cluster()
        with CaptureQueriesContext(connection) as queries:
            body = client.get("/api/v1/clusters?page_size=1000").json()
        assert len(body["items"]) == count
        return len(queries)

    client.get("/api/v1/clusters")
    assert queries_for(50) == queries_for(200)


def test_nodes_are_counted_without_the_retired(client: APIClient) -> None:
    node = make_node()
    make_node(cluster=node.cluster, state="retired", retired_at=timezone.now())

    body = client.get(f"/api/v1/clusters/{node.cluster.slug}").json()

    assert body["node_count"] == 1


def test_ben_sees_and_changes_no_cluster() -> None:
    cluster = cluster_with()
    ben = make_api_client(make_ben())

    assert ben.get("/api/v1/clusters").status_code == 403
    assert ben.get(f"/api/v1/clusters/{cluster.pk}").status_code in {403, 404}
    assert post(ben, f"/{cluster.pk}/test-connection", {}).status_code in {403, 404}
    body = {"slug": "x", "name": "X", "site": cluster.site.slug, "kind": "local"}
    assert post(ben, "", body).status_code in {403, 422}
    assert Cluster.objects.count() == 1
