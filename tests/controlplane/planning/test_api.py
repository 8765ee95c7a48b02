"""Scenarios, runs, advice and the calculator over HTTP."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from controlplane.planning import services
from controlplane.planning.models import Scenario, ScenarioRun
from controlplane.serving.models import ChangePlan
from tests.controlplane.planning.recorded import make_recorded_run
from tests.controlplane.planning.rows import (
    TRAFFIC,
    a_problem,
    make_advice,
    make_run,
    make_scenario,
    make_serving_fleet,
)
from tests.controlplane.serving.factories import accelerators_of
from tests.factories import make_api_client, make_ben, make_olga

pytestmark = pytest.mark.django_db
SAVINGS = {
    "price": "3", "concurrency": "1000", "ttft_limit_seconds": "1", "pool_accelerators": "12",
    "in_flight_before": "99.585", "in_flight_after": "463.3",
}  # fmt: skip


@pytest.fixture
def olga() -> Any:
    return make_olga()


@pytest.fixture
def api(olga: Any) -> APIClient:
    return make_api_client(olga)


def post(api: APIClient, path: str, body: Any = None, key: str = "key-00001") -> Any:
    return api.post(f"/api/v1{path}", body or {}, format="json", HTTP_IDEMPOTENCY_KEY=key)


def test_a_scenario_is_stated_run_and_found_again(api: APIClient) -> None:
    made = post(api, "/scenarios", {"name": "peak", "problem": a_problem()})
    run = post(api, f"/scenarios/{made.data['id']}/run", {"seed": 3}, key="key-00002")
    row = ScenarioRun.objects.get()
    services.work_on_run(operation_id=row.operation_id)

    assert made.status_code == 201
    assert run.status_code == 202
    assert run.data["state"] == "pending"
    assert run.data["result"] is None
    found = api.get(run.data["links"]["self"])
    assert found.data["state"] == "succeeded"
    assert found.data["method"] == "simulated"
    assert found.data["error_band"]["throughput"] == 0.15
    advice = api.get(run.data["links"]["advice"]).data["items"]
    assert advice[0]["verdict"] == "keep"
    assert "meet the targets" in advice[0]["sentences"][0]
    assert api.get("/api/v1/scenarios/peak").data["last_run_state"] == "succeeded"


def test_a_scenario_of_a_pool_takes_the_fleet_as_it_is(api: APIClient) -> None:
    pool, _node = make_serving_fleet(both=2)

    made = post(api, "/scenarios", {"name": "now", "pool": pool.slug, "traffic": TRAFFIC})

    assert made.status_code == 201
    assert made.data["origin"] == "fleet"
    assert made.data["problem"]["demands"][0]["now"] == {
        "amd-mi325x": {"prefill": 0, "decode": 0, "both": 2}
    }


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "x"}, "problem"),
        ({"name": "x", "problem": {}, "pool": "p"}, "pool"),
        ({"name": "x", "problems": {}}, "problems"),
        ({"problem": {}}, "name"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_member(
    api: APIClient, body: dict[str, Any], pointer: str
) -> None:
    answer = post(api, "/scenarios", body)

    assert answer.status_code == 422
    assert pointer in answer.data["errors"][0]["pointer"]


def test_a_problem_that_cannot_be_planned_says_why(api: APIClient) -> None:
    answer = post(api, "/scenarios", {"name": "x", "problem": {"groups": [], "demands": []}})

    assert answer.status_code == 422
    assert answer.data["code"] == "scenario-invalid"
    assert "groups" in answer.data["detail"]


def test_the_same_key_makes_one_scenario(api: APIClient) -> None:
    body = {"name": "peak", "problem": a_problem()}

    first, second = post(api, "/scenarios", body), post(api, "/scenarios", body)

    assert first.data["id"] == second.data["id"]
    assert Scenario.objects.count() == 1


def test_a_scenario_is_renamed_and_retired(api: APIClient, olga: Any) -> None:
    row = make_scenario(olga)

    renamed = api.patch(f"/api/v1/scenarios/{row.pk}", {"name": "night"}, format="json")
    gone = api.delete(f"/api/v1/scenarios/{row.pk}")

    assert renamed.data["name"] == "night"
    assert gone.status_code == 204
    assert api.get("/api/v1/scenarios").data["items"] == []


def test_a_pending_run_is_cancelled_without_a_result(api: APIClient, olga: Any) -> None:
    run = make_run(actor=olga)

    answer = api.post(f"/api/v1/scenario-runs/{run.pk}/cancel", {}, format="json")
    again = api.post(f"/api/v1/scenario-runs/{run.pk}/cancel", {}, format="json")

    assert answer.data["state"] == "cancelled"
    assert answer.data["result"] is None
    assert again.data["code"] == "run-ended"


def test_the_tag_of_a_run_moves_with_its_operation(api: APIClient, olga: Any) -> None:
    run = make_run(actor=olga)
    path = f"/api/v1/scenario-runs/{run.pk}"
    tag = api.get(path)["ETag"]

    assert api.get(path, HTTP_IF_NONE_MATCH=tag).status_code == 304
    services.work_on_run(operation_id=run.operation_id)
    assert api.get(path, HTTP_IF_NONE_MATCH=tag).status_code == 200


def test_advice_becomes_a_draft_and_stays_one(api: APIClient) -> None:
    pool, node = make_serving_fleet(both=2)
    members = {"amd-mi325x": [str(one.pk) for one in accelerators_of(node)]}
    advice = make_advice(pool, members, wanted={"amd-mi325x": {"prefill": 1, "both": 1}})

    answer = post(api, f"/advice/{advice.pk}/make-change-plan")

    plan = ChangePlan.objects.get(pk=answer.data["links"]["change_plan"].split("/")[-1])
    assert answer.status_code == 200
    assert answer.data["change_plan"] == plan.number
    assert plan.state == "draft"


def test_reasons_are_told_in_the_language_of_the_request(api: APIClient, olga: Any) -> None:
    make_recorded_run(olga)

    told = api.get("/api/v1/advice", HTTP_ACCEPT_LANGUAGE="ko").data["items"][0]["sentences"]

    assert any("굿풋" in sentence for sentence in told)


def test_the_calculator_may_save_and_may_cost(api: APIClient) -> None:
    saves = api.post("/api/v1/savings-calculator", SAVINGS, format="json")
    swapped = SAVINGS | {"in_flight_before": "463.3", "in_flight_after": "99.585"}
    costs = api.post("/api/v1/savings-calculator", swapped, format="json")

    assert saves.data["accelerators_before"] == "120.5"
    assert saves.data["value"] == {"amount": "2486088.00", "currency": "USD"}
    assert costs.data["value"]["amount"] == "-2486088.00"
    assert saves.data["method"] == "modelled"


def test_the_calculator_reads_points_and_refuses_a_side_without_any(api: APIClient) -> None:
    body = {name: value for name, value in SAVINGS.items() if name != "in_flight_after"}
    points = [
        {"in_flight": "100", "ttft_seconds": "0.5"}, {"in_flight": "300", "ttft_seconds": "1.5"},
    ]  # fmt: skip

    read = api.post("/api/v1/savings-calculator", body | {"points_after": points}, format="json")
    missing = api.post("/api/v1/savings-calculator", body, format="json")

    assert read.data["accelerators_after"] == "60.0"
    assert read.data["bound"] == "exact"
    assert missing.status_code == 422
    assert "in_flight_after" in missing.data["errors"][0]["pointer"]


def test_a_baseline_that_could_not_serve_the_load_makes_a_saving_of_at_least_so_much(
    api: APIClient,
) -> None:
    body = {name: value for name, value in SAVINGS.items() if name != "in_flight_before"}
    points = [{"in_flight": "100", "ttft_seconds": "900"}]

    found = api.post("/api/v1/savings-calculator", body | {"points_before": points}, format="json")

    assert found.status_code == 200
    assert found.data["accelerators_before"] == "120.0"
    assert found.data["bound"] == "at-least"


def test_refusals_are_told_in_korean(olga: Any) -> None:
    korean = make_api_client(olga)
    korean.defaults["HTTP_ACCEPT_LANGUAGE"] = "ko"
    side = {name: value for name, value in SAVINGS.items() if name != "in_flight_after"}

    neither = post(korean, "/scenarios", {"name": "x"})
    missing = korean.post("/api/v1/savings-calculator", side, format="json")

    for answer in (neither, missing):
        assert answer.status_code == 422
        assert re.search("[가-힣]", answer.data["errors"][0]["detail"])


@pytest.mark.parametrize("path", ["/scenarios", "/scenario-runs", "/advice"])
def test_a_tenant_sees_and_does_nothing(path: str, olga: Any) -> None:
    run = make_recorded_run(olga)
    ben = make_api_client(make_ben())

    assert ben.get(f"/api/v1{path}").status_code == 403
    assert ben.get(f"/api/v1/scenario-runs/{run.pk}").status_code in {403, 404}
    refused = post(ben, f"/scenarios/{run.scenario_id}/run")
    assert refused.status_code in {403, 404}
    assert post(ben, "/scenarios", {"name": "x", "problem": a_problem()}).status_code == 403
    assert ben.post("/api/v1/savings-calculator", SAVINGS, format="json").status_code == 403
    assert ScenarioRun.objects.count() == 1


@pytest.mark.parametrize("path", ["/scenarios", "/scenario-runs", "/advice"])
def test_a_list_costs_the_same_queries_for_many_rows(api: APIClient, olga: Any, path: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert api.get(f"/api/v1{path}").status_code == 200
        return len(found)

    make_recorded_run(olga, seed=1)
    api.get(f"/api/v1{path}")
    few = queries()
    for seed in range(2, 12):
        make_recorded_run(olga, seed=seed)

    assert queries() == few <= 8
