"""Pages of clusters: who answers, why not, what is missing, and a test that is followed."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.operations.models import Operation
from inventory.models import Cluster
from tests.controlplane.console.scene import Scene
from tests.inventory.factories import make_cluster


def text_of(client: Client, path: str, **headers: str) -> str:
    return client.get(path, headers=headers).content.decode()


def address(scene: Scene) -> str:
    return f"/fleet/clusters/{scene.kubernetes.pk}"


def test_the_list_says_who_is_silent_and_what_is_missing_there(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    text = text_of(client_of(scene.operator), "/fleet/clusters")

    assert text.index("seoul-k8s") < text.index("seoul-1<"), "what is in trouble comes first"
    assert "The API server does not answer." in text
    assert "EndpointSlice" in text
    assert "2 rights" in text
    assert "no API server" in text


def test_a_cluster_says_what_the_server_said_and_what_to_do(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    text = text_of(client_of(scene.operator), address(scene))

    assert "etcdserver: no leader" in text
    assert "network policies" in text
    assert "3 attempts in a row." in text
    assert "get pods/log in serving" in text
    assert "Gateway API Inference Extension 1.6.0" in text
    assert "Kubernetes 1.21 or newer" in text


def test_nothing_that_was_not_asked_is_shown_as_missing_or_there(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    Cluster.objects.filter(pk=scene.kubernetes.pk).update(
        kinds=None, missing_rights=None, version="", failures=0, error="", asked_at=None
    )

    text = text_of(client_of(scene.operator), address(scene))

    assert "A test of the connection asks for them." in text
    assert 'class="st bad"' not in text
    assert "Everything that is needed" not in text


def test_korean_readers_get_the_trouble_in_korean(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    text = text_of(client_of(scene.operator, "ko"), address(scene))

    assert "API 서버가 응답하지 않습니다." in text
    assert "etcdserver: no leader" in text


def test_a_test_is_started_and_followed_on_the_page(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)

    response = client.post(f"{address(scene)}/test", headers={"HX-Request": "true"}, follow=True)
    text = response.content.decode()

    assert not text.startswith("<!DOCTYPE")
    assert text.lstrip().startswith('<div id="cluster"')
    assert "every 2s" in text
    assert "A worker asks the cluster." in text
    Operation.objects.update(state="succeeded", finished_at=timezone.now())
    assert "every 15s" in text_of(client, address(scene), **{"HX-Request": "true"})


def test_without_a_script_a_test_comes_back_to_the_page(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    response = client_of(scene.operator).post(f"{address(scene)}/test")

    assert (response.status_code, response["Location"]) == (302, address(scene))


def test_a_cluster_without_an_api_server_has_nothing_to_test(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    local = make_cluster(kind="static", slug="elsewhere")
    client = client_of(scene.operator)

    assert "Test connection" not in text_of(client, f"/fleet/clusters/{local.pk}")
    response = client.post(f"/fleet/clusters/{local.pk}/test", follow=True)
    assert "has no API server" in response.content.decode()


def test_a_reader_sees_no_button_that_only_operators_may_press(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.approver)

    text = text_of(client, address(scene))
    assert "Test connection" not in text
    assert f"{address(scene)}/change" not in text
    assert client.get("/fleet/clusters/add").status_code == 403
    assert client.get(f"{address(scene)}/change").status_code == 403
    client.post(f"{address(scene)}/test")
    assert Operation.objects.filter(kind="inventory.test-connection").count() == 1


@pytest.mark.django_db
def test_no_cluster_yet_leads_to_the_first(client_of: Callable[..., Client]) -> None:
    from tests.factories import make_olga

    text = text_of(client_of(make_olga()), "/fleet/clusters")

    assert "Add the first cluster" in text
