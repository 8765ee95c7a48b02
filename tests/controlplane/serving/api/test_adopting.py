"""Adopting engines over REST."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from controlplane.serving.models import Workload
from inventory.models import Node
from tests.controlplane.serving.factories import make_fleet_node, make_pool
from tests.controlplane.serving.services.test_adopting import QWEN, endpoint, seen
from tests.factories import make_admin, make_api_client, make_ben

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def post(client: APIClient, node: Node, **changes: Any) -> Any:
    body = {
        "cluster": node.cluster.slug, "object_kind": QWEN["kind"], "namespace": "ml",
        "name": "qwen", "change_reason": "it runs there",
    }  # fmt: skip
    return client.post(
        "/api/v1/pools/granite/adopt", body | changes, format="json",
        headers={"Idempotency-Key": "adopt-engines"},
    )  # fmt: skip


@pytest.fixture
def node() -> Node:
    """A node with one accelerator and two addresses of engines."""
    make_pool(slug="granite")
    node = make_fleet_node(accelerators=1, kind="kubernetes")
    seen(node.cluster, *(endpoint(f"http://10.0.0.{n}:8000", node.hostname) for n in (1, 2)))
    return node


def test_each_address_is_answered_for(node: Node) -> None:
    response = post(make_api_client(make_admin()), node)

    workload = Workload.objects.get()
    assert response.status_code == 200
    assert response.json() == {
        "adopted": [
            {
                "workload": str(workload.pk), "name": workload.name, "url": "http://10.0.0.1:8000",
                "accelerator": str(workload.accelerator_id),
            }
        ],
        "skipped": [
            {"url": "http://10.0.0.2:8000", "node": node.hostname, "why": "no-accelerator"}
        ],
    }  # fmt: skip


def test_what_was_not_seen_is_a_problem(node: Node) -> None:
    response = post(make_api_client(make_admin()), node, name="other")

    assert (response.status_code, response.json()["code"]) == (404, "adoptable-unknown")


def test_ben_adopts_nothing(node: Node) -> None:
    assert post(make_api_client(make_ben()), node).status_code in (403, 404)
    assert not Workload.objects.exists()
