"""Sites over REST."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from inventory.models import Site
from tests.factories import make_api_client, make_ben, make_olga
from tests.inventory.factories import make_site

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def post(client: APIClient, path: str, body: dict[str, Any]) -> Any:
    headers = {"Idempotency-Key": f"key-{path}-{body['slug']}".replace(" ", "-")}
    return client.post(f"/api/v1/{path}", body, format="json", headers=headers)


def test_a_site_is_added(client: APIClient) -> None:
    site = post(
        client, "sites",
        {"slug": "KR-SEO-1", "name": "Seoul 1", "country": "KR", "pue": "1.350",
         "tariff_per_kwh": "0.1", "currency": "USD"},
    ).json()  # fmt: skip

    assert (site["pue"], site["tariff_per_kwh"], site["jurisdiction"]) == (
        "1.350", "0.100000", "KR",
    )  # fmt: skip


def test_a_figure_of_a_site_changes_with_a_reason(client: APIClient) -> None:
    site = make_site()

    body = {"pue": "1.2", "change_reason": "measured"}
    response = client.patch(f"/api/v1/sites/{site.pk}", body, format="json")

    assert response.json()["pue"] == "1.200"


def test_a_site_is_air_gapped_with_the_hosts_that_count_as_inside(client: APIClient) -> None:
    site = make_site()
    path, hosts = f"/api/v1/sites/{site.pk}", ["s3.local", ".example.internal"]
    body = {"air_gapped": True, "internal_hosts": hosts, "change_reason": "no line outside"}

    changed = client.patch(path, body, format="json").json()
    refused = client.patch(
        path, {"internal_hosts": ["https://s3.local/x"], "change_reason": "x"}, format="json"
    )

    assert (changed["air_gapped"], changed["internal_hosts"]) == (True, hosts)
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param({"slug": "x", "name": "X", "country": "kr"}, 422, "value-not-allowed", id="c"),
        pytest.param(
            {"slug": "x y", "name": "X", "country": "KR"}, 422, "validation-failed", id="s"
        ),
        pytest.param({"slug": "taken", "name": "X", "country": "KR"}, 409, "slug-taken", id="t"),
        pytest.param(
            {"slug": "x", "name": "X", "country": "KR", "pues": 1}, 422, "validation-failed", id="u"
        ),
    ],
)
def test_a_site_that_cannot_be_is_a_problem(
    client: APIClient, body: dict[str, Any], status: int, code: str
) -> None:
    make_site(slug="taken")

    response = post(client, "sites", body)

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert Site.objects.count() == 1


def test_a_list_needs_the_same_queries_at_50_and_at_200_rows(client: APIClient) -> None:
    def queries_for(count: int) -> int:
        for _ in range(count - Site.objects.count()):
            make_site()
        with CaptureQueriesContext(connection) as queries:
            body = client.get("/api/v1/sites?page_size=1000").json()
        assert len(body["items"]) == count
        return len(queries)

    client.get("/api/v1/sites")
    assert queries_for(50) == queries_for(200)


def test_ben_sees_no_site() -> None:
    ben = make_api_client(make_ben())

    assert ben.get("/api/v1/sites").status_code == 403
    assert post(ben, "sites", {"slug": "x", "name": "X", "country": "KR"}).status_code == 403
