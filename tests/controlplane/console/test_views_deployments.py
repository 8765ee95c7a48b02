"""Engines on their pages: what is wanted, what is seen, and the sentence that explains it."""

from collections.abc import Callable

import pytest
from django.test import Client

from controlplane.serving.models import Workload
from tests.controlplane.console.scene import Scene

PAGE = "/serving/deployments"
UNSCHEDULABLE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {
        "type": kind, "status": status, "reason": reason, "message": message,
        "at": "2026-11-30T09:00:00+00:00",
    }  # fmt: skip


@pytest.fixture
def waiting(scene: Scene) -> Workload:
    """An engine that a cluster cannot place."""
    row = Workload.objects.order_by("name")[0]
    row.generation, row.observed_generation = 2, 1
    row.observed = {"state": "starting"}
    row.conditions = [
        condition("Applied", "True"),
        condition("Scheduled", "False", "Unschedulable", UNSCHEDULABLE),
        condition("Started", "False", "Unschedulable"),
        condition("TargetReachable", "True"),
    ]
    row.desired = {
        "argv": ["vllm", "serve", "m", "--port", "8000"],
        "manifests": [{"kind": "Deployment"}],
    }
    row.save()
    return row


def test_an_engine_that_waits_says_why_in_the_schedulers_words(
    scene: Scene, client_of: Callable[..., Client], waiting: Workload
) -> None:
    text = client_of(scene.operator).get(PAGE).content.decode()

    assert "Unschedulable" in text
    assert UNSCHEDULABLE in text


def test_those_that_should_run_and_do_not_are_found(
    scene: Scene, client_of: Callable[..., Client], waiting: Workload
) -> None:
    running = Workload.objects.exclude(pk=waiting.pk)
    running.update(observed={"state": "running"}, observed_generation=0, generation=0)

    page = client_of(scene.operator).get(PAGE, {"show": "waiting"}).context["page"]

    assert [row.name for row in page] == [waiting.name]


def test_an_engine_without_role_and_process_is_shown_with_all_only(
    scene: Scene, client_of: Callable[..., Client], waiting: Workload
) -> None:
    Workload.objects.filter(pk=waiting.pk).update(
        desired_state="absent", role="", observed={"state": "absent"}
    )
    client = client_of(scene.operator)

    some = {row.pk for row in client.get(PAGE).context["page"]}
    every = {row.pk for row in client.get(PAGE, {"show": "all"}).context["page"]}

    assert every - some == {waiting.pk}


def test_drift_is_told_where_everything_else_is_as_wanted(
    scene: Scene, client_of: Callable[..., Client], waiting: Workload
) -> None:
    drifted = "spec.replicas: 3 instead of 1 (held by kubectl)"
    waiting.conditions = [condition("Drifted", "True", "FieldsDiffer", drifted)]
    waiting.save()

    text = client_of(scene.operator).get(f"{PAGE}/{waiting.pk}").content.decode()

    assert drifted in text


def test_the_page_of_an_engine_has_conditions_command_and_manifests(
    scene: Scene, client_of: Callable[..., Client], waiting: Workload
) -> None:
    text = client_of(scene.operator).get(f"{PAGE}/{waiting.pk}").content.decode()

    assert "kind: Deployment" in text
    assert "vllm serve m\n  --port 8000" in text
    assert "1<span" in text


def test_output_that_a_target_does_not_give_is_a_sentence(
    scene: Scene, client_of: Callable[..., Client], waiting: Workload
) -> None:
    Workload.objects.filter(pk=waiting.pk).update(target="static")

    text = client_of(scene.operator).get(f"{PAGE}/{waiting.pk}/logs").content.decode()

    assert "run by somebody else" in text


@pytest.mark.parametrize("page", ["", "/{pk}", "/{pk}/logs"])
def test_people_of_a_tenant_see_none(
    scene: Scene, client_of: Callable[..., Client], waiting: Workload, page: str
) -> None:
    response = client_of(scene.tenant_user).get(PAGE + page.format(pk=waiting.pk))

    assert response.status_code in {403, 404}
