"""Ledger hours in the API: decimal strings with a currency, classes that sum to the total."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from controlplane.finance import services
from tests.controlplane.finance.rows import HOUR, NOW, assign, make_asset_cost, make_pool
from tests.controlplane.telemetry.rows import make_cluster, make_node, make_site
from tests.factories import make_ana, make_api_client, make_olga, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_money_is_text_with_a_currency_and_unknown_is_null() -> None:
    node = make_node(hostname="gpu-1", cluster=make_cluster(site=make_site(pue=None)))
    make_asset_cost(node)
    assign(make_pool(), list(node.accelerators.all()[:1]), "both")
    services.recompute_ledger(start=HOUR, end=NOW, now=NOW)

    body = make_api_client(make_user(None, "finance")).get("/api/v1/ledger-hours").json()

    (item,) = body["items"]
    assert item["node"] == "gpu-1"
    assert item["total"]["currency"] == "USD"
    assert isinstance(item["total"]["amount"], str)
    assert item["power"] is None
    assert item["power_source"] == "unknown"
    parts = [Decimal(part["amount"]["amount"]) for part in item["classes"]]
    assert sum(parts) == Decimal(item["total"]["amount"])
    assert [part["cost_class"] for part in item["classes"]] == ["assigned", "idle"]


@pytest.mark.parametrize("maker", [make_olga, make_ana])
@pytest.mark.parametrize(
    "path", ["ledger-hours", "asset-costs", "site-cost-periods", "node-costs", "unit-costs"]
)
def test_costs_are_for_finance_only(maker: Any, path: str) -> None:
    response = make_api_client(maker()).get(f"/api/v1/{path}")

    assert (response.status_code, response.json()["code"]) == (403, "not-permitted")


def test_the_list_needs_the_same_queries_for_any_number_of_rows(
    django_assert_max_num_queries: Any,
) -> None:
    make_asset_cost(make_node())
    client = make_api_client(make_user(None, "finance"))
    counts = []
    for hours in (50, 200):
        start = NOW - timedelta(hours=hours)
        services.recompute_ledger(start=start, end=NOW, now=NOW)
        with django_assert_max_num_queries(12) as queries:
            client.get("/api/v1/ledger-hours?page_size=1000")
        counts.append(len(queries))

    assert counts[0] == counts[1]
