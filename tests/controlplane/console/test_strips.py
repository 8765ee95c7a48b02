"""Bars of the overview."""

from controlplane.console import strips
from controlplane.console.selectors import overview
from tests.controlplane.console.scene import Scene


def test_the_capacity_strips_say_their_numbers_in_words(scene: Scene) -> None:
    accelerators, nodes = strips.capacity_strips(overview.capacity(scene.operator))

    assert accelerators.delivered_words == "31 healthy, 1 degraded, 4 unknown"
    assert accelerators.reserved_words == "20 active, 0 not"
    assert 'aria-label="Delivered 36: 31 healthy, 1 degraded, 4 unknown"' in (
        accelerators.delivered_bar
    )
    assert (nodes.delivered, nodes.reserved) == (7, 4)


def test_a_role_bar_orders_roles_and_leaves_out_the_absent() -> None:
    drawn = strips.role_bar({"unassigned": 2, "prefill": 2, "both": 0}, label="H100")

    assert 'aria-label="H100: 2 unassigned, 2 prefill"' in drawn
    assert drawn.index("f-p") < drawn.index("c-i")
    assert "f-b" not in drawn
