"""A tenant's people see rows of their tenant only, on every list and detail of the API."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from controlplane.api.router import router
from controlplane.common.tenants import tenant_path
from tests.factories import (
    make_ana,
    make_api_client,
    make_api_token,
    make_ben,
    make_inference_key,
    make_organisation,
    make_project,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
LISTS = sorted(prefix for prefix, viewset, _basename in router.registry)


@pytest.mark.parametrize("prefix", LISTS)
def test_a_list_is_empty_refused_or_bens_own(prefix: str) -> None:
    ana, ben = make_ana(), make_ben()
    make_inference_key(project=make_project(tenant=ana.tenant))
    make_api_token(owner=ana)
    make_organisation()

    response = make_api_client(ben).get(f"/api/v1/{prefix}")

    assert response.status_code in {200, 400, 403, 405}, response.content
    text = response.content.decode()
    for secret_of_ana in (str(ana.tenant_id), ana.tenant.slug, ana.username):
        assert secret_of_ana not in text


@pytest.mark.parametrize("prefix", LISTS)
def test_rows_of_the_platform_are_refused_by_name_of_the_permission(prefix: str) -> None:
    viewset = {p: v for p, v, _b in router.registry}[prefix]
    model = getattr(getattr(viewset, "queryset", None), "model", None)
    if model is None or tenant_path(model) or model.__name__ == "Organisation":
        return
    response = make_api_client(make_ben()).get(f"/api/v1/{prefix}")

    assert response.status_code == 403
    assert response.json()["code"] == "not-permitted"


def _anas_rows(ana: Any) -> dict[str, Any]:
    project = make_project(tenant=ana.tenant)
    return {
        "tenants": ana.tenant,
        "projects": project,
        "inference-keys": make_inference_key(project=project)[0],
        "api-tokens": make_api_token(owner=ana)[0],
        "organisations": ana.tenant.organisation,
    }


@pytest.mark.parametrize(
    "prefix", ["tenants", "projects", "inference-keys", "api-tokens", "organisations"]
)
def test_anas_row_does_not_exist_for_ben(prefix: str) -> None:
    ana, ben = make_ana(), make_ben()
    row = _anas_rows(ana)[prefix]

    client: APIClient = make_api_client(ben)
    address = f"/api/v1/{prefix}/{row.pk}"

    assert client.get(address).status_code == 404
    for verb in ("patch", "delete"):
        response = getattr(client, verb)(
            address, {"name": "x", "change_reason": "x"}, format="json",
            headers={"If-Match": '"1"'},
        )  # fmt: skip
        assert response.status_code in {404, 405}
