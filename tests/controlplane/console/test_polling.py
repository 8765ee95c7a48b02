"""Parts of a page that ask again."""

from collections.abc import Callable

from django.test import Client
from django.utils import translation

from controlplane.console import polling
from tests.controlplane.console.scene import Scene

HTMX = {"HX-Request": "true"}


def test_tags_differ_by_content_and_language() -> None:
    english = polling.tag_of("a", 1)

    assert english == polling.tag_of("a", 1)
    assert english != polling.tag_of("a", 2)
    with translation.override("ko"):
        assert english != polling.tag_of("a", 1)


def test_htmx_gets_the_part_with_fresh_ages_and_others_the_page(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)

    part = client.get("/serving/pools", headers=HTMX)
    page = client.get("/serving/pools")

    assert b"<html" not in part.content
    assert b'hx-swap-oob="true"' in part.content
    assert b"<html" in page.content
    assert part["Cache-Control"] == "no-store"
    assert "HX-Request" in page["Vary"]


def test_a_plan_that_ended_stops_the_asking(scene: Scene, client_of: Callable[..., Client]) -> None:
    scene.plan.state = "cancelled"
    scene.plan.save()

    response = client_of(scene.operator).get(f"/serving/changes/{scene.plan.pk}", headers=HTMX)

    assert response.status_code == polling.STOP
    assert b"hx-trigger" not in response.content


def test_an_operation_that_ended_stops_the_asking(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)
    path = f"/operations/{scene.operation.pk}"
    assert client.get(path, headers=HTMX).status_code == 200
    scene.operation.state, scene.operation.finished_at = "failed", scene.plan.created_at
    scene.operation.save()

    assert client.get(path, headers=HTMX).status_code == polling.STOP
