"""What is suggested about a node that nobody planned, and how a change of health is told."""

from dataclasses import replace
from typing import Any

import pytest

from controlplane.operations.models import OutboxEvent
from inventory.discovery.base import FoundNode
from inventory.services.judging import tell_health, unknown_node
from inventory.vendors.base import FoundAccelerator
from tests.inventory.discovery.test_comparing_clusters import NOW
from tests.inventory.factories import make_node


def found(**parts: Any) -> FoundNode:
    return replace(FoundNode("gpu-1", "amd", "kubernetes", NOW, ()), **parts)


@pytest.mark.parametrize(
    ("parts", "observed", "model", "accelerators", "serials"),
    [
        pytest.param(
            {"count": 8, "model": "AMD_Instinct_MI325X"}, "8 x amd", "amd-mi325x", 8, [],
            id="counted",
        ),
        pytest.param({"count": 8}, "8 x amd", None, 8, [], id="model-unknown"),
        pytest.param({"usable": 0}, "amd", None, None, [], id="number-unknown"),
        pytest.param(
            {"accelerators": (FoundAccelerator(1, "B", "X"), FoundAccelerator(0, "A", "X"))},
            "2 x amd", None, 2, ["A", "B"], id="listed",
        ),
    ],
)  # fmt: skip
def test_the_suggestion_holds_what_the_sources_say_and_none_for_the_rest(
    parts: dict[str, Any],
    observed: str,
    model: str | None,
    accelerators: int | None,
    serials: list[str],
) -> None:
    difference = unknown_node(found(**parts))

    assert difference.observed == observed
    assert difference.suggestion == {
        "do": "create-node", "hostname": "gpu-1", "vendor": "amd", "model": model,
        "accelerators": accelerators, "serials": serials,
    }  # fmt: skip


@pytest.mark.django_db
def test_only_a_change_of_health_is_told() -> None:
    same, worse = make_node(), make_node()

    tell_health([(same, ""), (worse, "healthy")])

    event = OutboxEvent.objects.get()
    assert (event.type, event.data["was"]) == ("consort.node.unknown", "healthy")
