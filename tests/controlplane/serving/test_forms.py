"""Candidates of the select step."""

from controlplane.serving.forms import candidates
from tests.controlplane.console.scene import make_scene


def test_candidates_show_roles_and_what_is_in_the_way(db: None) -> None:
    scene = make_scene()
    scene.nodes[4].state = "cordoned"
    scene.nodes[4].save()

    rows = {row.node.hostname: row for row in candidates(scene.operator)}

    assert rows["gpu-07"].roles == {"decode": 8}
    assert rows["gpu-07"].pools == {"granite-chat"}
    assert (rows["gpu-07"].obstacle, rows["npu-21"].obstacle) == ("", "cordoned")
    assert rows["npu-31"].roles == {}


def test_people_of_a_tenant_have_no_candidates(db: None) -> None:
    assert candidates(make_scene().tenant_user) == []
