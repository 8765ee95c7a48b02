"""Engines that may be adopted, over REST."""

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from inventory.discovery.adoptable import read_pool
from inventory.models import Discovery
from tests.factories import make_api_client, make_ben, make_olga
from tests.inventory.discovery.test_adoptable import pod, pool
from tests.inventory.factories import make_cluster

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def test_engines_are_listed_with_their_age_by_short_name_and_by_id(client: APIClient) -> None:
    cluster, now = make_cluster(kind="kubernetes", slug="seoul"), timezone.now()
    found = read_pool(pool(), [pod()])
    assert found is not None
    Discovery.objects.create(cluster=cluster, listed_at=now, adoptable=[found.as_json()])

    body = client.get("/api/v1/clusters/seoul/adoptable").json()

    assert body == client.get(f"/api/v1/clusters/{cluster.pk}/adoptable").json()
    assert body["as_of"] is not None
    (item,) = body["items"]
    assert (item["kind"], item["name"], item["picker"]) == ("InferencePool", "qwen", "qwen-epp")
    assert item["endpoints"][0]["url"] == "http://10.0.0.7:8000"


def test_a_cluster_that_was_never_listed_says_so(client: APIClient) -> None:
    make_cluster(kind="kubernetes", slug="seoul")

    body = client.get("/api/v1/clusters/seoul/adoptable").json()

    assert (body["as_of"], body["items"]) == (None, [])


def test_ben_sees_no_cluster() -> None:
    make_cluster(kind="kubernetes", slug="seoul")

    response = make_api_client(make_ben()).get("/api/v1/clusters/seoul/adoptable")

    assert response.status_code in (403, 404)
