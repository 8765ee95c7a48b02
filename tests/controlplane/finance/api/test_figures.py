"""Computed figures in the API: cost per hour, per million tokens, per policy."""

from typing import Any

import pytest

from controlplane.finance import services
from controlplane.metering import services as metering
from tests.controlplane.finance.rows import (
    HOUR,
    NOW,
    assign,
    make_asset_cost,
    make_engine_hour,
    make_pool,
)
from tests.controlplane.metering.rows import make_event, make_segment
from tests.controlplane.telemetry.rows import make_node
from tests.factories import make_api_client, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
DAY = "from=2026-11-30T00:00:00Z&to=2026-12-01T00:00:00Z"


def get(path: str, status: int = 200) -> dict[str, Any]:
    response = make_api_client(make_user(None, "finance")).get(f"/api/v1/{path}")
    assert response.status_code == status, response.content
    body: dict[str, Any] = response.json()
    return body


def make_fleet() -> None:
    node = make_node(hostname="gpu-1")
    make_asset_cost(node)
    assign(make_pool(), list(node.accelerators.all()), "decode")
    make_engine_hour(node, generation_tokens=1000, prompt_computed_tokens=0)
    services.recompute_ledger(start=HOUR, end=NOW, now=NOW)


def test_cost_per_hour_by_node() -> None:
    make_fleet()

    (item,) = get("node-costs")["items"]

    assert (item["node"], item["accelerators"]) == ("gpu-1", 2)
    assert item["total"]["currency"] == "USD"
    assert item["power_source"] == "estimated"


def test_unit_costs_have_method_and_utilisation_beside_them() -> None:
    make_fleet()

    rows = {item["phase"]: item for item in get(f"unit-costs?{DAY}")["items"]}

    output = rows["output"]
    assert output["tokens"] == 1000
    assert output["cost_per_million_tokens"]["currency"] == "USD"
    assert output["method"] == "token_weight_2_5"
    assert output["utilisation"] is None


def test_policies_side_by_side() -> None:
    make_fleet()
    events = [
        make_event(1, policy="random", cached_tokens=100),
        make_event(2, policy="consort"),
    ]
    metering.ingest_segment(make_segment(events))

    body = get(f"policy-comparisons?pool=granite&{DAY}")

    consort, random = body["items"]
    assert (consort["policy"], random["policy"]) == ("consort", "random")
    for name in ("ttft_p50_s", "ttft_p90_s", "output_tokens_per_s", "prefix_hit_rate"):
        assert isinstance(consort[name], float)
    assert consort["cost_per_million_output_tokens"]["currency"] == "USD"
    assert body["differences"][0]["prefix_hit_rate_ratio"] == pytest.approx(6.0)
    assert body["word"] == body["differences"][0]["word"] == "estimate (simulated)"


def test_a_comparison_without_traffic_has_no_rows() -> None:
    body = get(f"policy-comparisons?pool=granite&{DAY}")

    assert (body["items"], body["differences"]) == ([], [])


def test_a_comparison_needs_a_pool() -> None:
    assert get("policy-comparisons", 400)["code"] == "pool-missing"
