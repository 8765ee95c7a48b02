"""What people do to plans and pools in the console."""

from typing import Any

import pytest
from django.test import Client

from controlplane.serving.models import ChangePlan, Pool
from controlplane.tenancy.models import User
from tests.controlplane.console.scene import Scene, make_scene

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene(db: None) -> Scene:
    """The small site, without the plan that is being applied."""
    found = make_scene()
    found.applying.state = "cancelled"
    found.applying.ended_at = found.applying.created_at
    found.applying.save()
    return found


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def wish(scene: Scene, **overrides: Any) -> dict[str, Any]:
    defaults = {
        "pool": scene.pool.pk, "role": "decode", "per_wave": 1, "floor_percent": 50,
        "soak_seconds": 5, "reason": "evening batch", "node": [scene.nodes[0].pk],
    }  # fmt: skip
    return defaults | overrides


def drafted(scene: Scene) -> ChangePlan:
    client_of(scene.operator).post("/serving/changes/add", wish(scene))
    return ChangePlan.objects.order_by("-serial")[0]


def test_ticked_nodes_stay_ticked_on_the_select_step(scene: Scene) -> None:
    text = client_of(scene.operator).get(
        f"/serving/changes/add?node={scene.nodes[0].pk}&node=nonsense"
    ).content.decode()  # fmt: skip

    assert text.count(" checked") == 1
    assert f'value="{scene.nodes[0].pk}" data-tick checked' in text


def test_a_wish_becomes_a_draft_with_one_wave_per_accelerator(scene: Scene) -> None:
    response = client_of(scene.operator).post("/serving/changes/add", wish(scene))

    plan = ChangePlan.objects.order_by("-serial")[0]
    assert response["Location"] == f"/serving/changes/{plan.pk}"
    assert (plan.state, plan.role, plan.reason) == ("draft", "decode", "evening batch")
    assert plan.waves.count() == 2
    assert plan.floor_share == 0.5


def test_release_is_a_choice_of_its_own(scene: Scene) -> None:
    client_of(scene.operator).post("/serving/changes/add", wish(scene, role="none"))

    assert ChangePlan.objects.order_by("-serial")[0].role == ""


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"node": []}, "0 accelerators"),
        ({"role": ""}, "id_role_error"),
        ({"reason": ""}, "id_reason_error"),
        ({"floor_percent": 101}, "id_floor_percent_error"),
        ({"per_wave": 0}, "id_per_wave_error"),
        ({"pool": "0197"}, "id_pool_error"),
    ],
)
def test_what_is_wrong_is_named_at_its_field_and_nothing_is_stored(
    scene: Scene, overrides: dict[str, Any], text: str
) -> None:
    before = ChangePlan.objects.count()

    response = client_of(scene.operator).post("/serving/changes/add", wish(scene, **overrides))

    assert response.status_code == 422
    assert text in response.content.decode()
    assert ChangePlan.objects.count() == before


def test_a_plan_goes_from_draft_over_another_persons_approval_to_applying(
    scene: Scene, sent_tasks: Any
) -> None:
    plan = drafted(scene)
    if any(check["verdict"] == "block" for check in plan.checks):
        ChangePlan.objects.filter(pk=plan.pk).update(checks=[])
    operator, approver = client_of(scene.operator), client_of(scene.approver)

    operator.post(f"/serving/changes/{plan.pk}/propose")
    own = operator.post(f"/serving/changes/{plan.pk}/approve", follow=True)
    approver.post(f"/serving/changes/{plan.pk}/approve", {"note": "looks right"})
    approved = ChangePlan.objects.get(pk=plan.pk).state
    operator.post(f"/serving/changes/{plan.pk}/apply")

    plan.refresh_from_db()
    assert b"nobody approves their own plan" in own.content
    assert approved == "approved"
    assert plan.approvals.get().comment == "looks right"
    assert plan.state == "applying"


@pytest.mark.parametrize("verb", ["reject", "rollback"])
def test_some_decisions_need_a_reason(scene: Scene, verb: str) -> None:
    response = client_of(scene.approver).post(
        f"/serving/changes/{scene.plan.pk}/{verb}", follow=True
    )

    scene.plan.refresh_from_db()
    assert b"Say why" in response.content
    assert scene.plan.state == "proposed"


def test_rejecting_cancels_with_the_reason(scene: Scene) -> None:
    client_of(scene.approver).post(
        f"/serving/changes/{scene.plan.pk}/reject", {"note": "too late in the day"}
    )

    scene.plan.refresh_from_db()
    assert scene.plan.state == "cancelled"
    assert "too late in the day" in scene.plan.outcome


def test_a_decision_that_does_not_fit_is_a_sentence(scene: Scene) -> None:
    response = client_of(scene.operator).post(
        f"/serving/changes/{scene.plan.pk}/apply", follow=True
    )

    assert b"CP-0046 is proposed; this needs: approved." in response.content


def test_an_unknown_verb_and_a_foreign_plan_are_not_found(scene: Scene) -> None:
    operator, ben = client_of(scene.operator), client_of(scene.tenant_user)

    assert operator.post(f"/serving/changes/{scene.plan.pk}/explode").status_code == 404
    assert ben.post(f"/serving/changes/{scene.plan.pk}/approve").status_code == 404
    assert operator.get(f"/serving/changes/{scene.plan.pk}/approve").status_code == 405


def test_another_policy_is_set_with_a_reason(scene: Scene, sent_tasks: Any) -> None:
    client = client_of(scene.operator)

    without = client.post(
        f"/serving/pools/{scene.pool.pk}/policy", {"policy": "random"}, follow=True
    )
    unchanged = Pool.objects.get(pk=scene.pool.pk).policy
    client.post(
        f"/serving/pools/{scene.pool.pk}/policy", {"policy": "random", "reason": "to compare"}
    )

    assert b"say why" in without.content
    assert unchanged == "consort"
    assert Pool.objects.get(pk=scene.pool.pk).policy == "random"


def test_readers_may_not_change_a_policy(scene: Scene) -> None:
    response = client_of(scene.approver).post(
        f"/serving/pools/{scene.pool.pk}/policy",
        {"policy": "random", "reason": "to compare"}, follow=True,
    )  # fmt: skip

    assert b"serving.change_pool" in response.content
    assert Pool.objects.get(pk=scene.pool.pk).policy == "consort"


def test_an_slo_is_set_from_the_pools_page(scene: Scene, sent_tasks: Any) -> None:
    client = client_of(scene.operator)
    Pool.objects.filter(pk=scene.pool.pk).update(admission={"trickle_share": 0.1})
    address = f"/serving/pools/{scene.pool.pk}/slo"
    wanted = {"slo_tpot_p95_seconds": "0.08", "queue_requests": "0", "reason": "answers stutter"}

    linked = client.get(f"/serving/pools/{scene.pool.pk}").content.decode()
    response = client.post(address, wanted)

    pool = Pool.objects.get(pk=scene.pool.pk)
    assert f'href="{address}"' in linked
    assert response["Location"] == f"/serving/pools/{scene.pool.pk}"
    assert (pool.slo_ttft_p95_seconds, pool.slo_tpot_p95_seconds) == (None, 0.08)
    assert pool.admission == {"trickle_share": 0.1, "queue_requests": 0}


def test_a_wrong_slo_is_named_at_its_field_and_nothing_is_stored(scene: Scene) -> None:
    before = Pool.objects.get(pk=scene.pool.pk).slo_tpot_p95_seconds

    response = client_of(scene.operator).post(
        f"/serving/pools/{scene.pool.pk}/slo", {"slo_tpot_p95_seconds": "61", "reason": "x"}
    )

    assert response.status_code == 422
    assert "id_slo_tpot_p95_seconds_error" in response.content.decode()
    assert Pool.objects.get(pk=scene.pool.pk).slo_tpot_p95_seconds == before


RULES = "chat -> granite 90, granite-legal 10"


def test_objectives_and_rewrites_are_set_from_the_pools_page(scene: Scene, sent_tasks: Any) -> None:
    client = client_of(scene.operator)
    address = f"/serving/pools/{scene.pool.pk}/gateway"
    wanted = {"objectives": "interactive 10\nbatch -5", "rewrites": RULES, "reason": "canary"}

    linked = client.get(f"/serving/pools/{scene.pool.pk}").content.decode()
    response = client.post(address, wanted)

    pool = Pool.objects.get(pk=scene.pool.pk)
    shown = client.get(response["Location"]).content.decode()
    assert f'href="{address}"' in linked
    assert pool.objectives == {"interactive": 10, "batch": -5}
    assert pool.rewrites[0]["targets"][1] == {"model": "granite-legal", "weight": 10}
    assert "granite 90, granite-legal 10" in shown
    assert "priority -5" in shown
    assert "chat -&gt; granite 90, granite-legal 10" in client.get(address).content.decode()


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"objectives": "interactive high"}, "Line 1: write a name and a whole number"),
        ({"rewrites": "chat -> a 90, b"}, "All targets of a rule have a weight, or none has."),
        ({"rewrites": "chat = a"}, "Line 1: write names, an arrow and models"),
    ],
)
def test_a_wrong_rule_is_told_and_nothing_is_stored(
    scene: Scene, sent: dict[str, str], told: str
) -> None:
    response = client_of(scene.operator).post(
        f"/serving/pools/{scene.pool.pk}/gateway", sent | {"reason": "x"}
    )

    assert response.status_code == 422
    assert told in response.content.decode()
    assert Pool.objects.get(pk=scene.pool.pk).rewrites == []


def test_an_objective_may_be_named_like_a_method_of_a_mapping(scene: Scene) -> None:
    Pool.objects.filter(pk=scene.pool.pk).update(objectives={"items": 7})

    response = client_of(scene.operator).get(f"/serving/pools/{scene.pool.pk}")

    assert response.status_code == 200
    assert "priority 7" in response.content.decode()


def test_readers_and_people_of_a_tenant_do_not_change_rules(scene: Scene) -> None:
    address = f"/serving/pools/{scene.pool.pk}/gateway"

    assert client_of(scene.approver).get(address).status_code == 403
    assert client_of(scene.tenant_user).get(address).status_code in {403, 404}


def test_an_slo_of_a_retired_pool_is_a_sentence(scene: Scene) -> None:
    Pool.objects.filter(pk=scene.pool.pk).update(state="retired")

    response = client_of(scene.operator).post(
        f"/serving/pools/{scene.pool.pk}/slo", {"reason": "x"}
    )

    assert response.status_code == 422
    assert "is retired" in response.content.decode()


def test_an_slo_of_a_pool_with_another_fault_is_a_sentence(scene: Scene) -> None:
    Pool.objects.filter(pk=scene.pool.pk).update(engine="gone")

    response = client_of(scene.operator).post(
        f"/serving/pools/{scene.pool.pk}/slo", {"reason": "x"}
    )

    assert response.status_code == 422
    assert "gone" in response.content.decode()


def test_readers_and_people_of_a_tenant_do_not_change_an_slo(scene: Scene) -> None:
    address = f"/serving/pools/{scene.pool.pk}/slo"

    assert client_of(scene.approver).get(address).status_code == 403
    assert client_of(scene.tenant_user).get(address).status_code in {403, 404}


def test_how_changes_arrive_is_changed_on_its_page(scene: Scene) -> None:
    client, page = client_of(scene.operator), f"/serving/pools/{scene.pool.pk}/rollout"

    refused = client.post(page, {"canary_seconds": "-1", "reason": "x"})
    saved = client.post(page, {"canary_seconds": "60", "self_heal": "on", "reason": "careful"})

    assert (refused.status_code, saved.status_code) == (422, 302)
    pool = Pool.objects.get(pk=scene.pool.pk)
    assert (pool.canary_seconds, pool.self_heal) == (60.0, True)


def test_the_page_of_a_plan_shows_what_the_pools_patch_changes(scene: Scene) -> None:
    plan = drafted(scene)
    difference = "--- rendered\n+++ patched\n+      priorityClassName: inference"
    check = {"name": "cluster", "verdict": "pass", "sentence": "", "numbers": {"patch": difference}}
    ChangePlan.objects.filter(pk=plan.pk).update(checks=[check])

    page = client_of(scene.operator).get(f"/serving/changes/{plan.pk}")

    assert "priorityClassName: inference" in page.content.decode()
