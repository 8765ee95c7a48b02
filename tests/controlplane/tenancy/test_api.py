"""Organisations, tenants, projects, keys and tokens in the API."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.factories import (
    make_admin,
    make_ana,
    make_api_client,
    make_olga,
    make_organisation,
    make_project,
    make_tenant,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def _post(client: APIClient, address: str, body: dict[str, Any], **headers: str) -> Any:
    keyed = {"Idempotency-Key": f"key-{address.replace('/', '-')}"} | headers
    return client.post(f"/api/v1/{address}", body, format="json", headers=keyed)


def test_from_organisation_to_key() -> None:
    client = make_api_client(make_admin())
    tenant = {"organisation": "public", "slug": "hanbit", "name": "Hanbit", "jurisdictions": ["KR"]}

    _post(client, "organisations", {"slug": "public", "name": "Public sector"})
    made = _post(client, "tenants", tenant)
    project = _post(client, "projects", {"tenant": "hanbit", "slug": "chat", "name": "Chat"})
    key = _post(client, "inference-keys", {"project": project.json()["id"], "name": "prod"})

    assert made.json() | tenant == made.json()
    assert (key.status_code, key.json()["tenant"], key.json()["project"]) == (201, "hanbit", "chat")
    assert "secret" not in client.get(f"/api/v1/inference-keys/{key.json()['id']}").json()


def test_a_tenant_is_suspended_and_resumed_under_its_version() -> None:
    client, tenant = make_api_client(make_admin()), make_tenant(slug="hanbit")
    tag = client.get("/api/v1/tenants/hanbit")["ETag"]
    reason = {"change_reason": "unpaid"}

    suspended = _post(client, "tenants/hanbit/suspend", reason, **{"If-Match": tag})
    stale = _post(client, "tenants/hanbit/resume", reason, **{"If-Match": tag})

    assert suspended.json()["state"] == "suspended"
    assert stale.status_code == 412
    tenant.refresh_from_db()
    assert tenant.state == "suspended"


def test_retiring_twice_is_the_same_as_once() -> None:
    client, project = make_api_client(make_admin()), make_project()
    address, body = f"/api/v1/projects/{project.pk}", {"change_reason": "over"}

    statuses = [client.delete(address, body, format="json").status_code for _ in range(2)]

    assert statuses == [204, 204]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"slug": "a", "name": "A"}, "#/organisation"),
        ({"organisation": "nowhere", "slug": "a", "name": "A"}, "#/organisation"),
        ({"organisation": "public", "slug": "A", "name": "A"}, "#/slug"),
        ({"organisation": "public", "slug": "a", "name": "=A"}, "#/name"),
        ({"organisation": "public", "slug": "a", "name": "A", "jurisdictions": ["korea"]},
         "#/jurisdictions"),
        ({"organisation": "public", "slug": "a", "name": "A", "state": "active"}, "#/state"),
    ],
)  # fmt: skip
def test_a_value_that_is_not_allowed_is_pointed_at(body: dict[str, Any], pointer: str) -> None:
    make_organisation(slug="public")

    response = _post(make_api_client(make_admin()), "tenants", body)

    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"].startswith(pointer)


def test_a_revocation_needs_a_reason() -> None:
    client = make_api_client(make_admin())
    key = _post(client, "inference-keys", {"project": str(make_project().pk), "name": "k"}).json()

    without = _post(client, f"inference-keys/{key['id']}/revoke", {})
    revoked = _post(
        client, f"inference-keys/{key['prefix']}/revoke", {"change_reason": "leaked"}
    )  # fmt: skip

    assert (without.status_code, without.json()["errors"][0]["pointer"]) == (422, "#/change_reason")
    assert revoked.json()["revoked_at"] is not None


def test_ana_issues_keys_for_her_own_projects_only() -> None:
    ana = make_ana()
    client, own, other = make_api_client(ana), make_project(tenant=ana.tenant), make_project()

    mine = _post(client, "inference-keys", {"project": str(own.pk), "name": "k"})
    theirs = _post(client, "inference-keys", {"project": str(other.pk), "name": "k"},
                   **{"Idempotency-Key": "another-key"})  # fmt: skip

    assert mine.status_code == 201
    assert (theirs.status_code, theirs.json()["errors"][0]["pointer"]) == (422, "#/project")


def test_a_person_sees_their_own_tokens() -> None:
    olga = make_olga()

    items = make_api_client(olga).get("/api/v1/api-tokens").json()["items"]

    assert [item["owner"] for item in items] == [olga.username]
