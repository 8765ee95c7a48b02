"""ETag, If-None-Match and If-Match."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from controlplane.common.versions import version_of
from controlplane.tenancy.models import Tenant
from tests.factories import make_admin, make_api_client, make_organisation, make_tenant
from tests.racing import at_the_same_time

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def _rename(client: APIClient, tenant: Tenant, tag: str | None, name: str = "Other") -> Any:
    headers = {"If-Match": tag} if tag is not None else {}
    body = {"name": name, "change_reason": "they asked"}
    return client.patch(f"/api/v1/tenants/{tenant.pk}", body, format="json", headers=headers)


def test_an_unchanged_object_is_304() -> None:
    client, tenant = make_api_client(make_admin()), make_tenant()
    first = client.get(f"/api/v1/tenants/{tenant.slug}")

    second = client.get(f"/api/v1/tenants/{tenant.slug}", headers={"If-None-Match": first["ETag"]})

    assert (second.status_code, second.content) == (304, b"")


def test_an_unchanged_list_is_304_although_time_goes_on() -> None:
    client = make_api_client(make_admin())
    make_organisation()
    first = client.get("/api/v1/organisations")

    second = client.get("/api/v1/organisations", headers={"If-None-Match": first["ETag"]})

    assert second.status_code == 304


@pytest.mark.parametrize("tag", [None, "", "*"])
def test_a_change_that_names_no_version_is_refused(tag: str | None) -> None:
    client, tenant = make_api_client(make_admin()), make_tenant()

    response = _rename(client, tenant, tag)

    assert (response.status_code, response.json()["code"]) == (428, "if-match-required")


def test_a_change_for_an_older_version_is_refused_with_the_current_tag() -> None:
    client, tenant = make_api_client(make_admin()), make_tenant()
    seen = client.get(f"/api/v1/tenants/{tenant.pk}")["ETag"]
    _rename(client, tenant, seen, name="First")

    response = _rename(client, tenant, seen, name="Second")

    assert (response.status_code, response.json()["code"]) == (412, "version-mismatch")
    now = client.get(f"/api/v1/tenants/{tenant.pk}")
    assert response.json()["current_etag"] == now["ETag"]
    assert now.json()["name"] == "First"


def test_the_answer_of_a_change_carries_the_next_tag() -> None:
    client, tenant = make_api_client(make_admin()), make_tenant()
    seen = client.get(f"/api/v1/tenants/{tenant.pk}")["ETag"]

    changed = _rename(client, tenant, seen)

    assert changed.status_code == 200
    assert changed["ETag"] != seen
    assert changed["ETag"] == client.get(f"/api/v1/tenants/{tenant.pk}")["ETag"]


def test_what_is_only_observed_does_not_defeat_an_edit() -> None:
    client, tenant = make_api_client(make_admin()), make_tenant()
    version = version_of(client.get(f"/api/v1/tenants/{tenant.pk}")["ETag"])

    assert _rename(client, tenant, f'W/"{version}.999"').status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_two_edits_of_one_version_one_wins() -> None:
    client, tenant = make_api_client(make_admin()), make_tenant()
    seen = client.get(f"/api/v1/tenants/{tenant.pk}")["ETag"]
    statuses: list[int] = []

    def edit() -> None:
        statuses.append(_rename(client, tenant, seen).status_code)

    at_the_same_time(4, edit)

    assert sorted(statuses) == [200, 412, 412, 412]
