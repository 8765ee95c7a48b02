"""Lists of routing: filters, cursor, own rows for tenants, and the fleet only for its people."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.decisions import services
from controlplane.decisions.models import Decision
from tests.controlplane.decisions.records import Desk
from tests.controlplane.serving.rows import make_endpoint
from tests.factories import make_ana, make_api_client, make_olga, make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
OK = {"outcome": "ok", "status": 200, "ttft_seconds": 0.09, "cached_tokens": 640}
URL = "/api/v1/routing/decisions"


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.decide(outcome=OK)
    desk.decide(outcome=OK | {"outcome": "error", "status": 502}, tenant="tenant-b")
    desk.decide(model="other", text="x")
    services.take_in(desk.page(), router="router-a")
    return desk


def get(path: str, user: Any = None, **parameters: Any) -> Any:
    return make_api_client(user or make_olga()).get(path, parameters)


def test_decisions_are_listed_latest_first_and_filtered(desk: Desk) -> None:
    rows = get(URL).json()["items"]
    failed = get(URL, outcome="error").json()["items"]
    refused = get(URL, refusal_code="model-not-found").json()["items"]

    assert len(rows) == 3
    assert "record" not in rows[0]
    assert [row["tenant"] for row in failed] == ["tenant-b"]
    assert [row["status"] for row in refused] == [404]
    assert get(URL, colour="red").status_code == 400


def test_a_list_does_not_read_more_for_more_rows(desk: Desk) -> None:
    client = make_api_client(make_olga())
    with CaptureQueriesContext(connection) as few:
        client.get(URL)
    for _ in range(20):
        desk.decide()
    services.take_in(desk.page(), router="router-a")
    with CaptureQueriesContext(connection) as many:
        client.get(URL)

    assert len(many) == len(few)


@pytest.mark.lesson("T01")
def test_one_decision_answers_why_and_how_close_the_runner_up_was(desk: Desk) -> None:
    line = desk.lines[0]

    told = get(f"{URL}/{line['id']}").json()
    korean = get(f"{URL}/{line['id']}", language="ko").json()

    assert told["runner_up"] == line["runner_up"]
    assert told["margin_seconds"] == line["margin_seconds"]
    assert told["record"]["candidates"][0]["terms"]["total"] > 0
    assert line["destination"] in told["explanation"]["sentence"]
    assert korean["explanation"]["language"] == "ko"


def test_people_of_a_tenant_see_their_own_decisions_without_the_fleet(desk: Desk) -> None:
    ana = make_ana(tenant=make_tenant(slug="tenant-a"))

    rows = get(URL, ana).json()["items"]
    own = get(f"{URL}/{desk.lines[0]['id']}", ana).json()
    other = get(f"{URL}/{desk.lines[2]['id']}", ana)

    assert {row["tenant"] for row in rows} == {"tenant-a"}
    assert "candidates" not in own["record"]
    assert own["explanation"] is None
    assert desk.lines[0]["runner_up"] not in json.dumps(own)
    assert other.status_code == 404
    for path in ("shadow", "pairs", "readings"):
        assert get(f"/api/v1/routing/{path}", ana).status_code == 403


def test_shadow_policies_are_summed_over_the_hours_asked_for(desk: Desk) -> None:
    (row,) = get("/api/v1/routing/shadow", hours=1, pool="chat").json()["items"]

    sums = desk.router.shadows.describe()["round-robin"]
    assert (row["policy"], row["live"]) == ("round-robin", "consort")
    assert row["asked"] == sums["asked"]
    assert row["agreement"] == pytest.approx(sums["agreed"] / sums["asked"])
    assert row["regret_seconds"] == pytest.approx(sums["regret_seconds"] / sums["priced"])
    assert get("/api/v1/routing/shadow", pool="other").json()["items"] == []
    assert get("/api/v1/routing/shadow", hours="x").status_code == 400


def test_readings_tell_how_far_each_router_was_read(desk: Desk) -> None:
    (row,) = get("/api/v1/routing/readings").json()["items"]

    assert (row["router"], row["last_number"], row["last_error"]) == ("router-a", 5, "")


def test_pairs_have_their_verdict_and_the_borders_they_cross() -> None:
    contract = {"engine": "vllm", "engine_version": "1", "fabric": "eth"}
    prefill = make_endpoint(role="prefill", kv_contract=contract)
    decode = make_endpoint(
        prefill.pool, role="decode", kv_contract=contract | {"engine_version": "2"}
    )
    prefill.__class__.objects.update(state="ready")

    (row,) = get("/api/v1/routing/pairs", pool=prefill.pool.slug).json()["items"]

    assert (row["prefill"], row["decode"]) == (prefill.workload.name, decode.workload.name)
    assert row["verdict"] == "incompatible"
    assert "engine_version differs" in row["reason"]
    assert isinstance(row["crosses_site"], bool)


def test_a_decision_never_holds_a_prompt(desk: Desk) -> None:
    stored = json.dumps(list(Decision.objects.values_list("record", flat=True)))

    assert "group 1 group 1" not in stored
