"""Findings over REST."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from inventory import services
from inventory.discovery.kubernetes import read_nodes
from inventory.models import Cluster, Finding, Node, Observation
from inventory.services import recording
from tests.factories import make_api_client, make_ben, make_olga
from tests.inventory.discovery.cluster_objects import h100
from tests.inventory.factories import found_node, make_cluster, make_model, make_node

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def missing(**values: Any) -> Node:
    """A node of which every device is missing: one finding each."""
    node = make_node(**values)
    found = found_node(node, accelerators=(), seen_at=timezone.now())
    services.record_observation(cluster_id=node.cluster_id, found=found)
    return node


def post(client: APIClient, path: str) -> Any:
    return client.post(
        f"/api/v1/findings/{path}", {"change_reason": "seen on site"}, format="json",
        headers={"Idempotency-Key": f"key-{path.replace('/', '-')}"},
    )  # fmt: skip


def test_a_finding_shows_both_values_and_what_accepting_would_do(client: APIClient) -> None:
    node = missing(accelerators=1, hostname="gpu-1")

    (item,) = client.get(f"/api/v1/findings?node={node.pk}").json()["items"]

    assert (item["kind"], item["slot"], item["observed_by"]) == ("missing", 0, "agent")
    assert (item["intended"], item["observed"], item["state"]) == ("gpu-1-0", "", "open")
    assert item["suggestion"] == {"do": "retire-accelerator", "slot": 0}


@pytest.mark.parametrize(
    ("answer", "state"),
    [("accept", "accepted"), ("override", "overridden"), ("dismiss", "dismissed")],
)
def test_an_answer_closes_it_with_who_and_why(client: APIClient, answer: str, state: str) -> None:
    missing(accelerators=1)
    finding = Finding.objects.get()

    body = post(client, f"{finding.pk}/{answer}").json()

    assert (body["state"], body["reason"]) == (state, "seen on site")
    assert body["closed_by"].startswith("olga")
    assert client.get("/api/v1/findings").json()["items"] == []
    assert len(client.get(f"/api/v1/findings?state={state}").json()["items"]) == 1


def test_a_closed_finding_is_a_problem(client: APIClient) -> None:
    missing(accelerators=1)
    finding = Finding.objects.get()
    post(client, f"{finding.pk}/accept")

    response = post(client, f"{finding.pk}/dismiss")

    assert (response.status_code, response.json()["code"]) == (409, "finding-closed")


def test_a_list_needs_the_same_queries_at_50_and_at_200_rows(client: APIClient) -> None:
    cluster = make_cluster()

    def queries_for(count: int) -> int:
        while (left := count - Finding.objects.count()) > 0:
            missing(accelerators=min(left, 50), cluster=cluster)
        with CaptureQueriesContext(connection) as queries:
            body = client.get("/api/v1/findings?page_size=1000").json()
        assert len(body["items"]) == count
        return len(queries)

    client.get("/api/v1/findings")
    assert queries_for(50) == queries_for(200)


def test_observations_are_listed_as_they_came_in_constant_queries(client: APIClient) -> None:
    node = missing(accelerators=1)

    def queries_for(count: int) -> int:
        for _ in range(count - Observation.objects.count()):
            found = found_node(node, seen_at=timezone.now())
            services.record_observation(cluster_id=node.cluster_id, found=found)
        with CaptureQueriesContext(connection) as queries:
            body = client.get(f"/api/v1/observations?node={node.pk}&page_size=1000").json()
        assert len(body["items"]) == count
        assert body["items"][-1]["content"]["accelerators"] == []
        return len(queries)

    client.get("/api/v1/observations")
    assert queries_for(50) == queries_for(200)


def test_ben_sees_no_finding() -> None:
    missing(accelerators=1)
    ben = make_api_client(make_ben())

    assert ben.get("/api/v1/findings").status_code == 403
    assert ben.get("/api/v1/observations").status_code == 403
    assert post(ben, f"{Finding.objects.get().pk}/accept").status_code == 404


def unknown_nodes(count: int) -> Cluster:
    """A cluster that lists nodes nobody planned."""
    make_model(slug="nvidia-h100-sxm", vendor="nvidia", name="H100 SXM 80GB")
    cluster = make_cluster(kind="kubernetes")
    found = read_nodes(
        [h100(f"gpu-{number}") for number in range(count)], [], seen_at=timezone.now()
    )
    recording.record_looks(cluster_id=cluster.pk, found=found)
    return cluster


def accept_many(client: APIClient, **body: Any) -> Any:
    return client.post(
        "/api/v1/findings/accept-many", {"change_reason": "ours"} | body, format="json",
        headers={"Idempotency-Key": "accept-many"},
    )  # fmt: skip


def test_a_finding_of_a_cluster_shows_what_each_source_said(client: APIClient) -> None:
    unknown_nodes(1)

    (item,) = client.get("/api/v1/findings?kind=unknown-node").json()["items"]

    assert item["observed_by"] == "kubernetes"
    assert {"name": "count", "value": 8, "source": "label", "place": "NVIDIA"} in item["facts"]


def test_all_unknown_nodes_of_a_cluster_are_accepted_by_one_operation(client: APIClient) -> None:
    cluster = unknown_nodes(3)

    response = accept_many(client, cluster=cluster.slug, kind="unknown-node")

    assert response.status_code == 202
    assert response.headers["Location"] == f"/api/v1/operations/{response.json()['id']}"
    services.run_accepting(operation_id=response.json()["id"])
    operation = client.get(response.headers["Location"]).json()
    assert (operation["state"], operation["result"]["accepted"]) == ("succeeded", 3)
    assert Node.objects.filter(cluster=cluster).count() == 3


def test_a_choice_without_an_open_finding_is_a_problem(client: APIClient) -> None:
    response = accept_many(client, cluster="nowhere", kind="unknown-node")

    assert (response.status_code, response.json()["code"]) == (422, "nothing-to-accept")
