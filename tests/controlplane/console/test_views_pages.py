"""Every page: who may open it, that it is plain HTML without inline code, in both languages."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from controlplane.serving.models import Workload
from tests.controlplane.console.scene import Scene

FLEET_PAGES = [
    "console:nodes",
    "node",
    "console:clusters",
    "console:findings",
    "cluster",
    "console:pools",
    "pool",
    "console:roles",
    "console:changes",
    "change",
    "applying",
    "console:routers",
    "console:deployments",
    "deployment",
]
MONEY_PAGES = ["console:cost"]
OWN_PAGES = [
    "console:overview",
    "console:operations",
    "console:account",
    "console:help",
    "console:search",
]
OPERATOR_PAGES = [
    "console:audit",
    "serving:change_add",
    "slo",
    "rollout",
    "inventory:import",
    "inventory:cluster-add",
    "cluster-change",
    "operation",
    "console:route-test",
]
DECISION_PAGES = ["console:decisions", "decision"]
PLANNING_PAGES = ["console:race", "console:planning", "planning:savings", "scenario", "run"]
MAIN_PAGES = [
    *OWN_PAGES, *FLEET_PAGES, *MONEY_PAGES, *OPERATOR_PAGES, *DECISION_PAGES, *PLANNING_PAGES,
    "planning:scenario_add",
]  # fmt: skip


def address(scene: Scene, page: str) -> str:
    """Address of a page; names without a colon are pages of one object of the scene."""
    of_objects = {
        "node": ("console:node", scene.nodes[3].pk),
        "cluster": ("console:cluster", scene.kubernetes.pk),
        "cluster-change": ("inventory:cluster-change", scene.kubernetes.pk),
        "pool": ("console:pool", scene.pool.pk),
        "slo": ("serving:pool_slo", scene.pool.pk),
        "rollout": ("serving:pool_rollout", scene.pool.pk),
        "deployment": ("console:deployment", Workload.objects.first().pk),
        "change": ("console:change", scene.plan.pk),
        "applying": ("console:change", scene.applying.pk),
        "operation": ("console:operation", scene.operation.pk),
        "decision": ("console:decision", scene.decision.pk),
        "scenario": ("console:scenario", scene.run.scenario_id),
        "run": ("console:scenario-run", scene.run.pk),
    }
    name, *arguments = of_objects.get(page, (page,))
    return reverse(name, args=arguments)


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("page", MAIN_PAGES)
def test_the_operator_gets_a_plain_page_in_either_language(
    scene: Scene, client_of: Callable[..., Client], page: str, language: str
) -> None:
    response = client_of(scene.operator, language).get(address(scene, page))
    text = response.content.decode()
    ids = re.findall(r'\sid="([^"]+)"', text)

    assert response.status_code == 200
    assert text.startswith("<!DOCTYPE html>")
    assert f'<html lang="{language}"' in text
    assert text.count("<h1>") == 1
    assert len(ids) == len(set(ids))
    assert text.count("<table") == text.count("<caption")
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", text)
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]


def test_the_approver_can_read_fleet_and_money(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.approver)
    pages = [*OWN_PAGES, *FLEET_PAGES, *MONEY_PAGES]

    statuses = {page: client.get(address(scene, page)).status_code for page in pages}

    assert statuses == dict.fromkeys(pages, 200)


def test_people_of_a_tenant_are_told_which_permission_they_lack(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.tenant_user)

    for page in [*FLEET_PAGES, *MONEY_PAGES, "console:audit", "inventory:import"]:
        response = client.get(address(scene, page))

        assert response.status_code == 403, page
        assert b"You need the permission" in response.content, page


def test_people_of_a_tenant_see_pages_of_their_own_without_the_fleet(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.tenant_user)

    for page in OWN_PAGES:
        response = client.get(address(scene, page))

        assert response.status_code == 200, page
        assert b"gpu-01" not in response.content, page
        assert b"granite-chat" not in response.content, page


def test_who_is_not_signed_in_is_sent_to_the_login(scene: Scene) -> None:
    for page in [*FLEET_PAGES, *MONEY_PAGES, *OPERATOR_PAGES]:
        response = Client().get(address(scene, page))

        assert response.status_code == 302, page
        assert response["Location"].startswith("/login?next="), page


def test_every_tab_of_a_node_opens(scene: Scene, client_of: Callable[..., Client]) -> None:
    client = client_of(scene.operator)

    for tab in ("now", "hardware", "roles", "cost", "history", "no-such-tab"):
        response = client.get(address(scene, "node") + f"?tab={tab}")

        assert response.status_code == 200, tab


def test_a_page_of_korean_words_holds_them(scene: Scene, client_of: Callable[..., Client]) -> None:
    text = client_of(scene.operator, "ko").get("/").content.decode()

    for word in ("개요", "프리필", "디코드", "겸용", "미배정", "알 수 없음"):
        assert word in text
