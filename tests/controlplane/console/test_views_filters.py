"""Filters, searches and lists in the address."""

from collections.abc import Callable

from django.test import Client

from controlplane.console.selectors.control import operations_for
from tests.controlplane.console.scene import Scene


def test_filters_of_nodes_stand_in_the_address(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)

    amd = client.get("/fleet/nodes?vendor=amd").content
    none = client.get("/fleet/nodes?vendor=amd&health=failed").content

    assert b"gpu-07" in amd
    assert b"gpu-01" not in amd
    assert b"No rows match the filters." in none
    assert b"7 nodes exist without filters." in none


def test_lists_are_filtered_by_state_and_ignore_states_that_do_not_exist(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)

    assert b"CP-0046" in client.get("/serving/changes?state=proposed").content
    assert b"CP-0045" not in client.get("/serving/changes?state=proposed").content
    assert b"CP-0045" in client.get("/serving/changes?state=nonsense").content
    assert b"No operation is in this state." in client.get("/operations?state=failed").content
    assert b"No plan is in this state." in client.get("/serving/changes?state=draft").content


def test_the_audit_is_searched_by_action_and_object(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)
    client.post("/logout")
    client = client_of(scene.operator)

    assert b"user.logout" in client.get("/audit?q=logout").content
    assert b"No entry matches." in client.get("/audit?q=nothing-like-this").content


def test_an_object_of_another_kind_is_not_found(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)

    for path in ("/fleet/nodes", "/serving/pools", "/serving/changes", "/operations"):
        assert client.get(f"{path}/{scene.operator.pk}").status_code == 404, path


def test_the_search_needs_a_text(scene: Scene, client_of: Callable[..., Client]) -> None:
    client = client_of(scene.operator)

    assert b"Type the name" in client.get("/search").content
    assert b"gpu-07" in client.get("/search?q=gpu-07").content
    assert b"Nothing that you may see" in client.get("/search?q=zzz").content


def test_people_see_their_own_operations_whatever_their_roles(scene: Scene) -> None:
    scene.operation.created_by = scene.tenant_user
    scene.operation.save()

    assert list(operations_for(scene.tenant_user)) == [scene.operation]


def test_a_month_of_costs_is_chosen_in_the_address(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)

    assert b"Cost, January 2020" in client.get("/cost?month=2020-01").content
    assert client.get("/cost?month=nonsense").status_code == 200
