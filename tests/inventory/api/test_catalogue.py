"""Vendors, models and types over REST, each figure with its source."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from inventory import services
from inventory.models import AcceleratorModel, NodeType
from tests.factories import make_api_client, make_ben, make_olga
from tests.inventory.factories import make_model, make_node_type

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def test_vendors_with_their_evidence(client: APIClient) -> None:
    items = client.get("/api/v1/vendors").json()["items"]

    slugs = [item["slug"] for item in items]
    assert slugs == sorted(slugs)
    assert {"amd", "furiosa", "huawei-ascend", "intel-gaudi", "nvidia", "rebellions"} < set(slugs)
    assert all(item["evidence"] for item in items)
    biren = next(item for item in items if item["slug"] == "biren")
    assert (biren["exporter"], biren["exporter_port"], biren["metrics"]) == (None, None, {})
    gaudi = next(item for item in items if item["slug"] == "intel-gaudi")
    assert gaudi["metrics"]["power"] == {"name": "habanalabs_power_mW", "unit": "mW", "note": ""}
    assert (gaudi["exporter_port"], gaudi["evidence"]) == (41611, "first-party")


def test_one_vendor_by_its_slug(client: APIClient) -> None:
    assert client.get("/api/v1/vendors/nvidia").json()["name"] == "NVIDIA"
    assert client.get("/api/v1/vendors/acme").status_code == 404


def test_a_model_has_figures_with_source_and_confidence(client: APIClient) -> None:
    services.load_catalogue()

    body = client.get("/api/v1/accelerator-models/huawei-ascend-910b").json()

    assert (body["memory_bytes"], body["fp8_tflops"]) == (64 * 10**9, None)
    assert body["figures"]["bandwidth_bytes_per_second"]["confidence"] == "unverified"
    vendors = client.get("/api/v1/accelerator-models?vendor=furiosa").json()["items"]
    assert [item["slug"] for item in vendors] == ["furiosa-rngd"]


@pytest.mark.parametrize("path", ["accelerator-models", "node-types"])
def test_a_list_needs_the_same_queries_at_50_and_at_200_rows(client: APIClient, path: str) -> None:
    def queries_for(count: int) -> int:
        model = AcceleratorModel if path == "accelerator-models" else NodeType
        for number in range(model.objects.count(), count):
            make_node_type(make_model(slug=f"amd-{number}"), 1)
        with CaptureQueriesContext(connection) as queries:
            body = client.get(f"/api/v1/{path}?page_size=1000").json()
        assert len(body["items"]) == count
        return len(queries)

    client.get(f"/api/v1/{path}")
    assert queries_for(50) == queries_for(200)


def test_ben_sees_no_catalogue() -> None:
    ben = make_api_client(make_ben())

    for path in ("vendors", "vendors/amd", "accelerator-models", "node-types"):
        assert ben.get(f"/api/v1/{path}").status_code == 403
