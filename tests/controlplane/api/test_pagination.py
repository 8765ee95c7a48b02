"""Pages by cursor."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from controlplane.tenancy.models import Organisation
from tests.factories import make_admin, make_api_client, make_organisation, make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def _slugs(body: dict[str, Any]) -> list[str]:
    return [item["slug"] for item in body["items"]]


def _walk(client: APIClient, query: str, *, way: str = "next", cursor: str = "") -> list[str]:
    seen: list[str] = []
    while True:
        extra = f"&cursor={cursor}" if cursor else ""
        body = client.get(f"/api/v1/organisations?{query}{extra}").json()
        seen = seen + _slugs(body) if way == "next" else _slugs(body) + seen
        cursor = body[way]
        if cursor is None:
            return seen


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("sort", ["slug", "-slug", "name", "-name", "name,-slug", "created_at"])
def test_pages_together_are_the_whole_list_in_order(size: int, sort: str) -> None:
    for number in range(7):
        make_organisation(slug=f"o-{number}", name=f"N{number % 3}")
    client = make_api_client(make_admin())

    seen = _walk(client, f"page_size={size}&sort={sort}")

    order = [*sort.split(","), "-pk" if sort.split(",")[-1].startswith("-") else "pk"]
    assert seen == list(Organisation.objects.order_by(*order).values_list("slug", flat=True))


def test_the_way_back_gives_the_same_pages() -> None:
    for number in range(7):
        make_organisation(slug=f"o-{number}", name=f"N{number % 3}")
    client = make_api_client(make_admin())
    query = "page_size=2&sort=name"
    third = client.get(f"/api/v1/organisations?{query}").json()
    for _ in range(2):
        third = client.get(f"/api/v1/organisations?{query}&cursor={third['next']}").json()

    before = _walk(client, query, way="previous", cursor=third["previous"])

    assert before + _slugs(third) + _walk(client, query, cursor=third["next"]) == _walk(
        client, query
    )


def test_a_row_inserted_meanwhile_repeats_nothing() -> None:
    for number in range(4):
        make_organisation(slug=f"o-{number}")
    client = make_api_client(make_admin())
    first = client.get("/api/v1/organisations?page_size=2").json()
    make_organisation(slug="a-first")

    second = client.get(f"/api/v1/organisations?page_size=2&cursor={first['next']}").json()

    assert _slugs(first) + _slugs(second) == ["o-0", "o-1", "o-2", "o-3"]


def test_rows_without_a_value_come_last_and_are_not_lost() -> None:
    from tests.factories import make_inference_key, make_project

    project = make_project()
    for days in (None, 3, None, 1, 2, None):
        make_inference_key(project=project, name=str(days), expires_in_days=days)
    client = make_api_client(make_admin())
    seen, cursor = [], ""
    while cursor is not None:
        extra = f"&cursor={cursor}" if cursor else ""
        body = client.get(f"/api/v1/inference-keys?sort=expires_at&page_size=2{extra}").json()
        seen += [item["name"] for item in body["items"]]
        cursor = body["next"]

    assert seen == ["1", "2", "3", "None", "None", "None"]


@pytest.mark.parametrize(
    "query", ["cursor=abc", "page_size=2&sort=-slug&cursor={next}", "page_size=2&cursor={next}x"]
)
def test_a_cursor_that_does_not_fit_is_refused(query: str) -> None:
    for number in range(4):
        make_organisation(slug=f"o-{number}")
    client = make_api_client(make_admin())
    first = client.get("/api/v1/organisations?page_size=2").json()

    response = client.get("/api/v1/organisations?" + query.format(next=first["next"]))

    assert (response.status_code, response.json()["code"]) == (400, "invalid-cursor")


@pytest.mark.parametrize(
    "query", ["page_size=0", "page_size=1001", "page_size=x", "sort=colour", "count=1"]
)
def test_a_value_out_of_range_is_refused_with_what_is_allowed(query: str) -> None:
    response = make_api_client(make_admin()).get(f"/api/v1/organisations?{query}")

    assert (response.status_code, response.json()["code"]) == (400, "invalid-parameter")
    assert response.json()["hint"].startswith("Allowed: ")


def test_the_count_stands_only_when_asked_for() -> None:
    make_organisation()
    client = make_api_client(make_admin())

    plain = client.get("/api/v1/organisations").json()
    counted = client.get("/api/v1/organisations?count=true").json()

    assert (plain["count"], counted["count"], counted["count_is_exact"]) == (None, 1, True)


def test_link_repeats_the_neighbours() -> None:
    for _ in range(3):
        make_organisation()
    client = make_api_client(make_admin())

    response = client.get("/api/v1/organisations?page_size=2")

    assert 'rel="next"' in response["Link"]
    assert 'rel="prev"' not in response["Link"]


def test_a_longer_list_takes_no_more_queries() -> None:
    client = make_api_client(make_admin())
    counts = []
    for total in (50, 200):
        while Organisation.objects.count() < total:
            make_tenant()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get("/api/v1/tenants?page_size=200")
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_fields_and_omit_make_objects_smaller() -> None:
    make_organisation(slug="o")
    client = make_api_client(make_admin())

    only = client.get("/api/v1/organisations?fields=slug,name").json()["items"][0]
    brief = client.get("/api/v1/organisations/o?brief=true").json()
    without = client.get("/api/v1/organisations/o?omit=name").json()

    assert set(only) == {"slug", "name"}
    assert set(brief) == {"id", "slug"}
    assert "name" not in without
