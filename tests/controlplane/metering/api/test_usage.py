"""Usage in the API: own rows only, sums that add up, and no zero where data is missing."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.metering.models import Reconciliation, UsageSegment
from tests.controlplane.metering.rows import HOUR, make_usage_hour
from tests.factories import make_ana, make_api_client, make_ben, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
DAY = "from=2026-11-30T00:00:00Z&to=2026-12-01T00:00:00Z"


def get(user: Any, path: str, status: int = 200) -> dict[str, Any]:
    response = make_api_client(user).get(f"/api/v1/{path}")
    assert response.status_code == status, response.content
    body: dict[str, Any] = response.json()
    return body


def test_usage_is_summed_by_group_and_hour() -> None:
    finance = make_user(None, "finance")
    make_usage_hour(project="a")
    make_usage_hour(project="b", hour=HOUR + timedelta(hours=1))
    make_usage_hour(project="b", key="other", hour=HOUR + timedelta(hours=1))

    rows = get(finance, f"usage?{DAY}&group_by=project&granularity=hour")["items"]
    whole = get(finance, f"usage?{DAY}")["items"]

    assert [(row["group"]["project"], row["period_start"]) for row in rows] == [
        ("a", "2026-11-30T10:00:00Z"),
        ("b", "2026-11-30T11:00:00Z"),
    ]
    assert rows[1]["tokens"]["cache_read"] == 1200
    assert whole[0]["total_tokens"] == sum(row["total_tokens"] for row in rows)
    assert whole[0]["complete"] is False
    assert whole[0]["sources"] == ["simulated"]


@pytest.mark.parametrize("path", [f"usage?{DAY}", "usage-hours"])
def test_ben_sees_nothing_of_anas(path: str) -> None:
    ana, ben = make_ana(), make_ben()
    make_usage_hour(tenant=ana.tenant.slug)

    assert len(get(ana, path)["items"]) == 1
    assert get(ben, path)["items"] == []


@pytest.mark.parametrize("path", ["usage-segments", "reconciliations"])
def test_tenants_see_no_segments_and_no_reconciliation(path: str) -> None:
    UsageSegment.objects.create(
        router="r1", first_sequence=1, last_sequence=2, sha256="0" * 64, events=2, ingested_at=HOUR
    )
    Reconciliation.objects.create(
        hour=HOUR, pool="granite", gateway_tokens=1, probe_tokens=0, source="simulated"
    )

    refused = make_api_client(make_ana()).get(f"/api/v1/{path}")

    assert refused.status_code in {200, 403}
    assert refused.json().get("items", []) == []
    assert len(get(make_user(None, "finance"), path)["items"]) == 1


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("group_by=colour", "grouping-unknown"),
        ("granularity=week", "grouping-unknown"),
        ("from=yesterday", "period-not-usable"),
        ("grup_by=role", "unknown-parameter"),
    ],
)
def test_what_cannot_be_read_is_refused(query: str, code: str) -> None:
    assert get(make_user(None, "finance"), f"usage?{query}", 400)["code"] == code


def test_an_hour_has_quantiles_or_null() -> None:
    make_usage_hour(ttft_digest={"0": 3})

    (item,) = get(make_user(None, "finance"), "usage-hours")["items"]

    assert item["ttft_seconds"]["p50"] == pytest.approx(1.0, rel=0.02)
    assert item["tpot_seconds"] == {"p50": None, "p90": None, "p95": None}


def test_totals_of_the_reconciliation() -> None:
    finance = make_user(None, "finance")
    common = {"pool": "granite", "probe_tokens": 10, "source": "simulated"}
    for number in range(2):
        Reconciliation.objects.create(
            hour=HOUR + timedelta(hours=number), gateway_tokens=100, engine_tokens=110,
            unattributed_tokens=0, **common,
        )  # fmt: skip

    totals = get(finance, "reconciliations/totals?pool=granite")
    assert totals["gateway_tokens"] == totals["engine_client_tokens"] == 200
    assert (totals["hours"], totals["unattributed_tokens"]) == (2, 0)

    Reconciliation.objects.create(hour=HOUR + timedelta(hours=3), gateway_tokens=5, **common)

    totals = get(finance, "reconciliations/totals?pool=granite")
    assert (totals["gateway_tokens"], totals["engine_client_tokens"]) == (205, None)
    assert totals["hours_not_reconciled"] == 1
    assert get(finance, "reconciliations/totals?pool=none")["gateway_tokens"] is None


def test_lists_need_the_same_queries_for_any_number_of_rows(
    django_assert_max_num_queries: Any,
) -> None:
    client = make_api_client(make_user(None, "finance"))
    counts = []
    for start in (0, 50):
        for number in range(start, start + 50):
            make_usage_hour(key=f"k{number}")
        for path in ("usage-hours?page_size=1000", f"usage?{DAY}&group_by=key"):
            with django_assert_max_num_queries(12) as queries:
                client.get(f"/api/v1/{path}")
            counts.append(len(queries))

    assert counts[:2] == counts[2:]
