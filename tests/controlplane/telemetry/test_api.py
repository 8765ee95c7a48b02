"""Telemetry in the API: unknown has a reason, and tenants see nothing."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.telemetry.models import Alert, EngineCounter, UtilisationHour
from tests.controlplane.finance.rows import make_engine_hour
from tests.controlplane.telemetry.rows import HOUR, make_node, make_target
from tests.factories import make_ana, make_api_client, make_olga

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
PATHS = ("telemetry/sources", "engine-counters", "engine-hours", "utilisation", "alerts")


def items(path: str) -> list[dict[str, Any]]:
    response = make_api_client(make_olga()).get(f"/api/v1/{path}")
    assert response.status_code == 200, response.content
    found: list[dict[str, Any]] = response.json()["items"]
    return found


def test_a_source_says_whether_it_speaks() -> None:
    node = make_node(hostname="gpu-1")
    make_target(node=node, endpoint="a", last_ok_at=HOUR)
    make_target(node=node, endpoint="b", last_ok_at=HOUR, failing_since=HOUR)
    make_target(node=node, endpoint="c", active=False, ended_at=HOUR)

    states = {item["endpoint"]: item["state"] for item in items("telemetry/sources?node=gpu-1")}

    assert states == {"a": "scraped", "b": "not_scraped", "c": "ended"}


def test_counters_stand_beside_their_time() -> None:
    target = make_target(role="decode")
    EngineCounter.objects.create(
        target=target, at=HOUR, prompt_tokens_total=100, generation_tokens_total=None
    )

    (item,) = items("engine-counters?role=decode")

    assert (item["prompt_tokens_total"], item["generation_tokens_total"]) == (100, None)
    assert item["as_of"] == "2026-11-30T10:00:00Z"
    assert item["source"] == "simulated"


def test_no_value_has_a_reason_and_idle_is_zero() -> None:
    first, second = make_node(accelerators=2).accelerators.order_by("slot")
    common = {"hour": HOUR, "expected_samples": 720, "source": "simulated"}
    UtilisationHour.objects.create(accelerator=first, utilisation=0.0, samples=720, **common)
    UtilisationHour.objects.create(
        accelerator=second, samples=0, not_scraped_since=HOUR - timedelta(hours=1), **common
    )

    found = {item["slot"]: item["utilisation"] for item in items("utilisation")}

    assert found[0] == {"value": 0.0, "unit": "share", "reason": None, "since": None}
    assert found[1] == {
        "value": None,
        "unit": "share",
        "reason": "not_scraped",
        "since": "2026-11-30T09:00:00Z",
    }


def test_alerts_can_be_limited_to_open_ones() -> None:
    node = make_node()
    for name, resolved_at in (("open", None), ("over", HOUR)):
        Alert.objects.create(
            kind="exporter_silent", fingerprint=name, node=node, since=HOUR, opened_at=HOUR,
            resolved_at=resolved_at, source="simulated",
        )  # fmt: skip

    assert [item["fingerprint"] for item in items("alerts?resolved=false")] == ["open"]
    assert [item["fingerprint"] for item in items("alerts?resolved=true")] == ["over"]


def test_hours_of_engines_are_listed() -> None:
    make_engine_hour(make_node(), prompt_tokens=7)

    assert items("engine-hours?pool=granite")[0]["prompt_tokens"] == 7


@pytest.mark.parametrize("path", PATHS)
def test_tenants_are_told_that_they_may_not(path: str) -> None:
    response = make_api_client(make_ana()).get(f"/api/v1/{path}")

    assert response.status_code in {200, 403}
    assert response.json().get("items", []) == []


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_filter_is_refused(path: str) -> None:
    response = make_api_client(make_olga()).get(f"/api/v1/{path}?colour=red")

    assert (response.status_code, response.json()["code"]) == (400, "unknown-parameter")


@pytest.mark.parametrize("path", ["utilisation", "engine-counters", "telemetry/sources"])
def test_lists_need_the_same_queries_for_any_number_of_rows(
    path: str, django_assert_max_num_queries: Any
) -> None:
    client = make_api_client(make_olga())
    node = make_node(accelerators=8)
    counts = []
    for _ in range(2):
        for _ in range(20):
            target = make_target(node=node)
            EngineCounter.objects.create(target=target, at=HOUR)
        with django_assert_max_num_queries(12) as queries:
            client.get(f"/api/v1/{path}?page_size=1000")
        counts.append(len(queries))

    assert counts[0] == counts[1]
