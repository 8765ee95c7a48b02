"""Inputs of finance in the API: versions, reasons, and sentences for what is wrong."""

from typing import Any
from uuid import uuid4

import pytest

from controlplane.finance.models import AssetCost
from tests.controlplane.finance.rows import make_asset_cost
from tests.controlplane.telemetry.rows import make_node, make_site
from tests.factories import make_api_client, make_olga, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def post(user: Any, path: str, body: dict[str, Any]) -> Any:
    return make_api_client(user).post(
        f"/api/v1/{path}", body, format="json", HTTP_IDEMPOTENCY_KEY=str(uuid4())
    )


def asset(node: Any, **overrides: Any) -> dict[str, Any]:
    return {
        "node": str(node.pk),
        "currency": "USD",
        "capex": "240000",
        "life_months": 48,
        "annual_rate": "0.06",
        "in_service_at": "2026-01-15T12:00:00Z",
        "change_reason": "invoice 17",
    } | overrides


def test_a_cost_is_recorded_and_shown() -> None:
    node = make_node(hostname="gpu-1")

    response = post(make_user(None, "finance"), "asset-costs", asset(node))

    assert response.status_code == 201, response.content
    body = response.json()
    assert (body["node"], body["version"]) == ("gpu-1", 1)
    assert body["capex"] == {"amount": "240000.0000000000", "currency": "USD"}
    assert body["opening_book_value"] is None
    assert response["Location"] == f"/api/v1/asset-costs/{body['id']}"


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"capex": "-1"}, 422),
        ({"life_months": 0}, 422),
        ({"in_service_at": "soon"}, 422),
        ({"colour": "red"}, 422),
        ({"currency": "KRW"}, 409),
        ({"in_service_at": "2026-01-15T12:00:00"}, 422),
        ({"in_service_at": "9999-12-31T23:59:59-14:00"}, 422),
    ],
)
def test_a_wrong_cost_is_refused_whole(wrong: dict[str, Any], status: int) -> None:
    response = post(make_user(None, "finance"), "asset-costs", asset(make_node(), **wrong))

    assert response.status_code == status, response.content
    assert not AssetCost.objects.exists()


def test_a_revision_is_another_version() -> None:
    row = make_asset_cost(make_node())

    response = post(
        make_user(None, "finance"),
        f"asset-costs/{row.pk}/revise",
        {"valid_from": "2031-01-01T00:00:00Z", "life_months": 84, "change_reason": "runs longer"},
    )

    assert response.status_code == 201, response.content
    assert (response.json()["version"], response.json()["life_months"]) == (2, 84)


def test_figures_of_a_site_are_recorded_once_a_month() -> None:
    finance, site = make_user(None, "finance"), make_site()
    body = {
        "site": str(site.pk),
        "month": "2026-11-01",
        "pue": "1.35",
        "tariff_per_kwh": "0.11",
        "source": "utility, invoice 4711",
    }

    first = post(finance, "site-cost-periods", body)
    second = post(finance, "site-cost-periods", body)

    assert first.status_code == 201, first.content
    assert first.json()["tariff_per_kwh"] == {"amount": "0.110000000000", "currency": "USD"}
    assert second.status_code in {409, 422}, second.content


def test_the_fleets_operator_may_not_record_costs() -> None:
    response = post(make_olga(), "asset-costs", asset(make_node()))

    assert response.status_code == 403


def test_a_node_is_named_by_its_hostname_and_a_wrong_name_by_its_place() -> None:
    finance, node = make_user(None, "finance"), make_node(hostname="gpu-1")

    wrong = post(finance, "asset-costs", asset(node) | {"node": "gpu-9"}).json()
    right = post(finance, "asset-costs", asset(node) | {"node": "gpu-1"})

    assert wrong["errors"][0]["pointer"] == "#/node"
    assert "'gpu-9' here, or you may not see it" in wrong["detail"]
    assert (right.status_code, right.json()["node"]) == (201, "gpu-1")
