"""Accelerators over REST: intended beside observed, cordon and replace."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from inventory import services
from inventory.models import Accelerator
from tests.factories import make_api_client, make_ben, make_olga
from tests.inventory.factories import found_node, make_node

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def post(client: APIClient, path: str, body: dict[str, Any]) -> Any:
    headers = {"Idempotency-Key": f"key-{path.replace('/', '-')}"}
    return client.post(f"/api/v1/accelerators/{path}", body, format="json", headers=headers)


def test_a_device_shows_readings_and_null_for_what_nobody_said(client: APIClient) -> None:
    node = make_node(accelerators=1, hostname="gpu-1")
    services.record_observation(cluster_id=node.cluster_id, found=found_node(node))

    (item,) = client.get(f"/api/v1/accelerators?node={node.pk}").json()["items"]

    assert (item["display"], item["slot"], item["serial"]) == ("gpu-1/0", 0, "gpu-1-0")
    assert (item["model"], item["health"], item["state"]) == ("amd-mi325x", "healthy", "ready")
    assert item["observed"]["name"] == "AMD Instinct MI325X"
    assert item["observed"]["power_watts"] is None


def test_a_list_needs_the_same_queries_at_50_and_at_200_rows(client: APIClient) -> None:
    def queries_for(count: int) -> int:
        make_node(accelerators=count - Accelerator.objects.count())
        with CaptureQueriesContext(connection) as queries:
            body = client.get("/api/v1/accelerators?page_size=1000").json()
        assert len(body["items"]) == count
        return len(queries)

    client.get("/api/v1/accelerators")
    assert queries_for(50) == queries_for(100) == queries_for(150) == queries_for(200)


def test_pages_go_on_where_the_last_one_ended(client: APIClient) -> None:
    make_node(accelerators=5)

    first = client.get("/api/v1/accelerators?page_size=3").json()
    second = client.get(f"/api/v1/accelerators?page_size=3&cursor={first['next']}").json()

    slots = [item["slot"] for item in first["items"] + second["items"]]
    assert slots == [0, 1, 2, 3, 4]


def test_a_device_is_cordoned_uncordoned_and_replaced(client: APIClient) -> None:
    device = make_node().accelerators.get(slot=1)
    reason = {"change_reason": "ECC"}

    assert post(client, f"{device.pk}/cordon", reason).json()["state"] == "cordoned"
    assert post(client, f"{device.pk}/uncordon", reason).json()["state"] == "ready"
    fresh = post(client, f"{device.pk}/replace", reason | {"serial": "NEW"}).json()

    assert (fresh["slot"], fresh["serial"], fresh["health"]) == (1, "NEW", "unknown")
    retired = client.get("/api/v1/accelerators?state=retired").json()["items"]
    assert [item["id"] for item in retired] == [str(device.pk)]


def test_ben_sees_no_device() -> None:
    device = make_node().accelerators.get(slot=0)
    ben = make_api_client(make_ben())

    assert ben.get("/api/v1/accelerators").status_code == 403
    assert post(ben, f"{device.pk}/cordon", {"change_reason": "x"}).status_code == 404
