"""The life of a node: who may do what, from which state, and what two callers at once get."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import OutboxEvent
from inventory import services
from inventory.errors import (
    NodeExistsError,
    NodeHeldError,
    NodeNotReadyError,
    NodeTransitionError,
    NodeWithoutAcceleratorsError,
    SerialInUseError,
    UnknownModelError,
    ValueNotAllowedError,
)
from inventory.models import Accelerator, Node
from tests.factories import make_ben, make_olga, make_user
from tests.inventory.factories import make_cluster, make_model, make_node

pytestmark = pytest.mark.django_db


def create(**overrides: Any) -> Node:
    make_model()
    defaults = {"hostname": "gpu-kr-07", "model": "amd-mi325x", "accelerators": 2}
    cluster = overrides.pop("cluster", None) or make_cluster()
    actor = overrides.pop("actor", None) or make_olga()
    return services.create_node(cluster_id=cluster.pk, actor=actor, **defaults | overrides)


def test_a_node_comes_with_an_accelerator_per_slot() -> None:
    node = create(accelerators=3, serials=["A", "B"], rack="A1", tags=["new"])

    found = node.accelerators.order_by("slot").values_list("slot", "serial", "vendor")
    assert list(found) == [(0, "A", "amd"), (1, "B", "amd"), (2, "", "amd")]
    assert (node.state, node.rack, node.delivered_at is not None) == ("ready", "A1", True)
    assert AuditEntry.objects.get(object_id=str(node.pk)).action == "node.create"


def test_a_planned_node_is_not_delivered() -> None:
    assert create(state="planned").delivered_at is None


@pytest.mark.parametrize(
    ("values", "error"),
    [
        pytest.param({"accelerators": 0}, NodeWithoutAcceleratorsError, id="no-accelerators"),
        pytest.param({"accelerators": 65}, NodeWithoutAcceleratorsError, id="too-many"),
        pytest.param({"model": "acme-1"}, UnknownModelError, id="unknown-model"),
        pytest.param({"serials": ["A", "A"]}, ValueNotAllowedError, id="serial-twice"),
        pytest.param({"hostname": "x" * 254}, ValueNotAllowedError, id="hostname-too-long"),
        pytest.param({"state": "lost"}, ValueNotAllowedError, id="unknown-state"),
    ],
)
def test_what_cannot_be_a_node_is_refused_whole(
    values: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        create(**values)

    assert (Node.objects.count(), Accelerator.objects.count()) == (0, 0)


def test_a_taken_hostname_and_a_taken_serial_name_their_holder() -> None:
    node = create(serials=["A"])

    with pytest.raises(NodeExistsError, match="hostname GPU-KR-07 exists in the cluster"):
        create(cluster=node.cluster, hostname="GPU-KR-07")
    with pytest.raises(SerialInUseError, match=r"serial A of amd belongs to .* gpu-kr-07/0"):
        create(hostname="gpu-kr-08", serials=["B", "A"])


STEPS: list[tuple[str, Callable[..., Node], tuple[str, ...], str]] = [
    ("cordon", services.cordon_node, ("ready", "draining"), "cordoned"),
    ("uncordon", services.uncordon_node, ("cordoned",), "ready"),
    ("drain", services.drain_node, ("ready", "cordoned"), "draining"),
    ("maintain", services.start_maintenance, ("cordoned", "draining"), "maintenance"),
    ("finish", services.finish_maintenance, ("maintenance",), "ready"),
    ("provision", services.provision_node, ("planned",), "provisioning"),
    ("deliver", services.deliver_node, ("planned", "provisioning"), "ready"),
]


@pytest.mark.parametrize("state", [s for s in Node.State.values if s != "retired"])
@pytest.mark.parametrize(
    ("_name", "step", "allowed", "result"), STEPS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_step_is_possible_from_its_states_only(
    _name: str, step: Callable[..., Node], allowed: set[str], result: str, state: str
) -> None:
    node = make_node(state=state)

    if state in allowed:
        assert step(node_id=node.pk, reason="fan", actor=make_olga()).state == result
    else:
        with pytest.raises(NodeTransitionError):
            step(node_id=node.pk, reason="fan", actor=make_olga())
        node.refresh_from_db()
        assert node.state == state


def test_a_step_is_recorded_and_told() -> None:
    node, olga = make_node(), make_olga()

    services.cordon_node(node_id=node.pk, reason="fan 3 is loud", actor=olga)

    entry = AuditEntry.objects.get(object_id=str(node.pk))
    assert (entry.action, entry.reason, entry.actor) == ("node.cordoned", "fan 3 is loud", olga)
    assert (entry.before, entry.after) == ({"state": "ready"}, {"state": "cordoned"})
    assert OutboxEvent.objects.get().type == "consort.node.cordoned"


def test_the_refusal_says_the_state_and_from_where_it_is_possible() -> None:
    node = make_node(state="cordoned", hostname="gpu-2")

    with pytest.raises(NodeNotReadyError) as refused:
        services.cordon_node(node_id=node.pk, reason="fan", actor=make_olga())

    assert "gpu-2" in str(refused.value)
    assert "cordoned" in str(refused.value)
    assert refused.value.facts["allowed_from"] == ["ready", "draining"]


def test_a_retired_node_keeps_its_rows_and_frees_its_names() -> None:
    node, olga = create(serials=["A", "B"]), make_olga()

    services.retire_node(node_id=node.pk, reason="sold", actor=olga)
    services.retire_node(node_id=node.pk, reason="again", actor=olga)
    again = create(cluster=node.cluster, serials=["A", "B"])

    node.refresh_from_db()
    assert (node.state, node.retired_at is not None) == ("retired", True)
    assert set(node.accelerators.values_list("state", flat=True)) == {"retired"}
    assert again.hostname == node.hostname


def holder(node: Node) -> str | None:
    """A holder as `settings.NODE_HOLDERS` names them."""
    return "prefill in granite-kr" if "held" in node.tags else None


@override_settings(NODE_HOLDERS=[f"{__name__}.holder"])
def test_a_node_that_somebody_holds_cannot_be_retired() -> None:
    held, free = make_node(tags=["held"]), make_node()

    with pytest.raises(NodeHeldError, match="prefill in granite-kr"):
        services.retire_node(node_id=held.pk, reason="sold", actor=make_olga())

    assert services.retire_node(node_id=free.pk, reason="sold", actor=make_olga()).retired_at


def test_rack_owner_and_tags_change_with_before_and_after() -> None:
    node = make_node()

    services.change_node(
        node_id=node.pk, reason="moved", actor=make_olga(), rack="B7", tags=["cold"]
    )

    node.refresh_from_db()
    assert (node.rack, node.tags) == ("B7", ["cold"])
    entry = AuditEntry.objects.get(object_id=str(node.pk))
    assert (entry.before, entry.after) == (
        {"rack": "", "tags": []}, {"rack": "B7", "tags": ["cold"]},
    )  # fmt: skip


@pytest.mark.parametrize("make_actor", [make_ben, lambda: make_user(None, "readonly")])
def test_ben_and_a_reader_change_nothing(make_actor: Callable[[], Any]) -> None:
    node, actor = make_node(), make_actor()

    for step in (services.cordon_node, services.drain_node, services.retire_node):
        with pytest.raises(NotPermittedError):
            step(node_id=node.pk, reason="fun", actor=actor)
    with pytest.raises(NotPermittedError):
        create(actor=actor)

    node.refresh_from_db()
    assert (node.state, Node.objects.count()) == ("ready", 1)


@pytest.mark.django_db(transaction=True)
def test_of_six_clicks_one_cordons(at_the_same_time: Callable[..., list[str]]) -> None:
    node, olga = make_node(), make_olga()

    outcomes = at_the_same_time(6, services.cordon_node, node_id=node.pk, reason="fan", actor=olga)

    assert outcomes == ["Node"] + ["NodeNotReadyError"] * 5


@pytest.mark.django_db(transaction=True)
def test_of_six_nodes_with_one_name_one_is_added(
    at_the_same_time: Callable[..., list[str]],
) -> None:
    cluster, olga = make_cluster(), make_olga()
    make_model()

    outcomes = at_the_same_time(
        6, services.create_node, cluster_id=cluster.pk, hostname="gpu-1", model="amd-mi325x",
        accelerators=2, actor=olga,
    )  # fmt: skip

    assert outcomes == ["Node"] + ["NodeExistsError"] * 5
    assert Accelerator.objects.count() == 2
