"""Serving over REST: a change by two people, the ledger at a moment, problems, nothing for Ben."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.serving import services
from controlplane.serving.models import ChangePlan, Pool, Router, RouterPush
from tests.controlplane.serving.factories import (
    make_approver,
    make_assigned,
    make_draft,
    make_fleet_node,
    make_pool,
    make_serving_model,
)
from tests.controlplane.serving.rows import make_endpoint
from tests.factories import make_api_client, make_ben, make_olga

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]

_keys = itertools.count(1)
LISTS = [
    "models", "pools", "role-assignments", "change-plans", "waves", "deployments", "endpoints",
    "pool-documents", "routers", "router-pushes",
]  # fmt: skip


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def post(client: APIClient, path: str, body: Any = None) -> Any:
    return client.post(
        f"/api/v1/{path}", body or {}, format="json",
        headers={"Idempotency-Key": f"serving-test-{next(_keys):08d}"},
    )  # fmt: skip


def make_router(name: str = "r1") -> Router:
    return Router.objects.create(
        name=name, admin_url=f"http://{name}", public_url=f"http://{name}",
        token_reference="env:R1_TOKEN",
    )  # fmt: skip


def make_one_of_each() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    make_assigned(pool, node)
    make_endpoint(pool=pool)
    make_router(f"r{next(_keys)}")
    services.publish_if_changed(pool_id=pool.pk)


def test_a_change_is_made_proposed_approved_by_another_and_applied(client: APIClient) -> None:
    pool, node, anders = make_pool(), make_fleet_node(), make_api_client(make_approver())
    wish = {"pool": pool.slug, "role": "both", "nodes": [str(node.pk)], "change_reason": "first"}

    drafted = post(client, "change-plans", wish)
    plan = f"change-plans/{drafted.json()['id']}"
    proposed = post(client, f"{plan}/propose")
    own = post(client, f"{plan}/approve")
    approved = post(anders, f"{plan}/approve", {"comment": "fine"})
    applied = post(client, f"{plan}/apply")

    assert drafted.status_code == 201, drafted.json()
    assert [one.json()["state"] for one in (drafted, proposed, approved, applied)] == [
        "draft", "proposed", "approved", "applying",
    ]  # fmt: skip
    assert (own.status_code, own.json()["code"]) == (403, "plan-own")
    assert approved.json()["approvals"][0]["comment"] == "fine"
    operation = client.get(applied.json()["links"]["operation"]).json()
    assert operation["kind"] == "serving.apply-plan"
    assert "state_parts" not in drafted.json()["effects"]


def test_checks_and_waves_of_a_plan_are_lists(client: APIClient) -> None:
    plan = make_draft(make_pool(), make_fleet_node(), accelerators_per_wave=1)

    checks = client.get(f"/api/v1/change-plans/{plan.pk}/checks").json()
    waves = client.get(f"/api/v1/change-plans/{plan.pk}/waves").json()

    assert {"memory", "engine", "contracts", "assignments", "floor"} <= {
        check["name"] for check in checks
    }
    assert [(wave["position"], wave["state"]) for wave in waves] == [(1, "pending"), (2, "pending")]


@pytest.mark.parametrize(
    ("wish", "status", "code"),
    [
        ({"nodes": []}, 422, "plan-empty"),
        ({"nodes": ["0196f000-0000-7000-8000-000000000000"]}, 422, "accelerators-unknown"),
    ],
)
def test_a_selection_that_makes_no_plan_is_answered_with_its_problem(
    client: APIClient, wish: dict[str, Any], status: int, code: str
) -> None:
    body = {"pool": make_pool().slug, "role": "both", "change_reason": "x"} | wish

    answer = post(client, "change-plans", body)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not ChangePlan.objects.exists()


def test_wrong_members_are_named_and_nothing_is_stored(client: APIClient) -> None:
    body = {
        "pool": "nowhere", "role": "boss", "floor_share": 2, "change_reason": "x", "nods": [],
    }  # fmt: skip

    answer = post(client, "change-plans", body)

    assert answer.status_code == 400 or answer.status_code == 422
    text = str(answer.json())
    assert "nods" in text


def test_a_stale_plan_says_what_differs(client: APIClient) -> None:
    pool = make_pool()
    plan = make_draft(pool, make_fleet_node())
    make_assigned(pool, make_fleet_node())

    answer = post(client, f"change-plans/{plan.pk}/propose")

    assert (answer.status_code, answer.json()["code"]) == (409, "plan-stale")
    assert "ledger" in answer.json()["detail"]


def test_the_ledger_is_read_at_a_moment(client: APIClient) -> None:
    make_assigned(make_pool(), make_fleet_node())
    earlier = (timezone.now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")

    now = client.get("/api/v1/role-assignments?at=now").json()["items"]
    before = client.get(f"/api/v1/role-assignments?at={earlier}").json()["items"]
    wrong = client.get("/api/v1/role-assignments?at=yesterday")

    assert [(row["role"], len(row["accelerators"])) for row in now] == [("both", 2)]
    assert before == []
    assert wrong.status_code == 400


def test_a_pool_is_added_and_its_policy_changed(client: APIClient) -> None:
    make_serving_model()
    wish = {
        "slug": "granite-kr", "name": "Granite", "model": "granite-4.1-8b",
        "role_mode": "disaggregated", "slo_ttft_p95_seconds": 1.5,
    }  # fmt: skip

    added = post(client, "pools", wish)
    changed = post(client, "pools/granite-kr/policy", {"policy": "random", "change_reason": "race"})

    assert added.status_code == 201, added.json()
    assert changed.json()["spec"]["policy"] == {"name": "random", "parameters": {}}
    assert changed.json()["spec"]["slo"]["ttft_p95_seconds"] == 1.5


def test_a_parameter_that_no_policy_has_is_refused_with_the_pointer(client: APIClient) -> None:
    pool = make_pool()
    body = {"policy": "consort", "parameters": {"speed": 1}, "change_reason": "x"}

    answer = post(client, f"pools/{pool.slug}/policy", body)

    assert (answer.status_code, answer.json()["code"]) == (422, "policy-refused")
    assert answer.json()["pointer"] == "/policy/parameters/speed"


def test_the_slo_of_a_pool_is_changed_and_shown(client: APIClient) -> None:
    pool = make_pool(slo_ttft_p95_seconds=1.5)
    body = {
        "slo_tpot_p95_seconds": 0.06, "admission": {"queue_requests": 50}, "change_reason": "chat",
    }  # fmt: skip

    spec = post(client, f"pools/{pool.slug}/slo", body).json()["spec"]

    assert spec["slo"] == {"ttft_p95_seconds": 1.5, "tpot_p95_seconds": 0.06}
    assert spec["admission"] == {"queue_requests": 50}


def test_how_changes_arrive_is_changed_and_shown(client: APIClient) -> None:
    pool = make_pool()
    body = {"canary_seconds": 60, "change_reason": "careful"}

    found = post(client, f"pools/{pool.slug}/rollout", body).json()

    assert found["spec"]["rollout"] == {"canary_seconds": 60.0, "self_heal": False}
    assert found["status"]["canary"] is None


def test_settings_that_are_held_back_are_told_with_the_reason(client: APIClient) -> None:
    canary = {"state": "tripped", "settings": "x", "version": 3, "router": "r1", "why": "Worse."}
    pool = make_pool(canary=canary)

    found = client.get(f"/api/v1/pools/{pool.slug}").json()["status"]["canary"]

    assert found == {"state": "tripped", "version": 3, "router": "r1", "why": "Worse."}


def test_rules_of_waiting_that_no_router_takes_are_refused_with_the_pointer(
    client: APIClient,
) -> None:
    body = {"admission": {"queue_requests": "many"}, "change_reason": "x"}

    answer = post(client, f"pools/{make_pool().slug}/slo", body)

    assert (answer.status_code, answer.json()["code"]) == (422, "slo-refused")
    assert answer.json()["pointer"] == "/admission/queue_requests"


def test_an_slo_needs_a_reason_and_a_target_within_bounds(client: APIClient) -> None:
    pool = make_pool()

    silent = post(client, f"pools/{pool.slug}/slo", {"slo_ttft_p95_seconds": 1})
    long = post(
        client, f"pools/{pool.slug}/slo", {"slo_ttft_p95_seconds": 3601, "change_reason": "x"}
    )

    assert "This change needs a reason." in silent.content.decode()
    assert "3600" in long.content.decode()
    assert {silent.status_code, long.status_code} == {422}


def test_objectives_and_rewrites_of_a_pool_are_changed_and_shown(client: APIClient) -> None:
    pool = make_pool(objectives={"batch": -1})
    rules = [{"models": ["chat"], "targets": [{"model": "granite"}]}]

    answer = post(
        client, f"pools/{pool.slug}/gateway-rules", {"rewrites": rules, "change_reason": "alias"}
    )

    spec = answer.json()["spec"]
    assert (spec["objectives"], spec["rewrites"]) == ({"batch": -1}, rules)


def test_rules_that_no_router_takes_are_refused_with_the_pointer(client: APIClient) -> None:
    body = {"rewrites": [{"targets": [{"model": "a", "weight": 0}]}], "change_reason": "x"}

    answer = post(client, f"pools/{make_pool().slug}/gateway-rules", body)

    assert (answer.status_code, answer.json()["code"]) == (422, "gateway-rules-refused")
    assert answer.json()["pointer"] == "/rewrites/0/targets/0/weight"


def test_resetting_knowledge_is_an_operation(client: APIClient) -> None:
    pool = make_pool()

    answer = post(client, f"pools/{pool.slug}/reset-knowledge")

    assert answer.status_code == 202
    assert client.get(answer["Location"]).json()["kind"] == "serving.reset-knowledge"


def test_a_router_never_shows_its_token_and_a_push_says_what_was_refused(
    client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("R1_TOKEN", "very-secret")
    body = {
        "name": "r1", "admin_url": "http://127.0.0.1:8081", "public_url": "http://127.0.0.1:8080",
        "token_reference": "env:R1_TOKEN",
    }  # fmt: skip

    added = post(client, "routers", body)
    pool = make_pool()
    services.publish_if_changed(pool_id=pool.pk)
    RouterPush.objects.update(state="refused", pointer="/endpoints/0/role", detail="No.")
    (push,) = client.get("/api/v1/router-pushes?state=refused").json()["items"]

    assert added.status_code == 201, added.json()
    assert "R1_TOKEN" not in added.content.decode()
    assert "very-secret" not in added.content.decode()
    assert (push["router"], push["version"], push["pointer"]) == ("r1", 1, "/endpoints/0/role")


def test_a_document_is_listed_without_its_content(client: APIClient) -> None:
    pool = make_pool()
    services.publish_if_changed(pool_id=pool.pk, reason="first")

    (row,) = client.get(f"/api/v1/pool-documents?pool={pool.slug}").json()["items"]

    assert (row["version"], row["reason"], "content" in row) == (1, "first", False)


def test_a_deployment_says_what_is_wanted_and_what_was_seen(client: APIClient) -> None:
    make_endpoint()

    (row,) = client.get("/api/v1/deployments").json()["items"]

    assert row["spec"]["argv"][:3] == ["python", "-m", "routing.testbed.engine"]
    assert (row["status"]["state"], row["status"]["observed_generation"]) == (None, 0)


@pytest.mark.parametrize("path", LISTS)
def test_a_list_needs_the_same_queries_for_more_rows(client: APIClient, path: str) -> None:
    def queries_for(count: int) -> int:
        for _ in range(count - Pool.objects.count()):
            make_one_of_each()
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(f"/api/v1/{path}?page_size=1000")
        assert answer.status_code == 200, answer.json()
        assert answer.json()["items"]
        return len(queries)

    make_one_of_each()
    client.get(f"/api/v1/{path}")

    assert queries_for(4) == queries_for(12)


@pytest.mark.parametrize("path", LISTS)
def test_ben_sees_nothing_of_the_fleet(path: str) -> None:
    make_one_of_each()

    answer = make_api_client(make_ben()).get(f"/api/v1/{path}")

    assert answer.status_code == 403


def test_ben_changes_nothing() -> None:
    plan, ben = make_draft(make_pool(), make_fleet_node()), make_api_client(make_ben())

    for verb in ("propose", "approve", "apply", "pause", "cancel"):
        assert post(ben, f"change-plans/{plan.pk}/{verb}").status_code in {403, 404}
    plan.refresh_from_db()
    assert plan.state == "draft"


def test_a_dry_run_answers_with_the_plan_and_stores_nothing(client: APIClient) -> None:
    pool, node = make_pool(), make_fleet_node()
    body = {"pool": pool.slug, "role": "both", "nodes": [str(node.pk)], "change_reason": "x"}

    answer = post(client, "change-plans?dry_run=true", body)

    assert answer.status_code == 200, answer.json()
    assert answer.json()["result"]["state"] == "draft"
    assert not ChangePlan.objects.exists()
