"""Answers to a difference: take over, keep the plan, let it be."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from inventory import services
from inventory.errors import FindingClosedError, FindingNotAcceptableError, SerialInUseError
from inventory.models import Finding, Node
from inventory.vendors.base import FoundAccelerator
from tests.factories import make_ben, make_olga
from tests.inventory.factories import found_node, make_model, make_node

pytestmark = pytest.mark.django_db


def observe(node: Node, **changes: Any) -> None:
    found = found_node(node, seen_at=timezone.now(), **changes)
    services.record_observation(cluster_id=node.cluster_id, found=found)


def device(slot: int, serial: str, name: str = "AMD Instinct MI325X") -> FoundAccelerator:
    return FoundAccelerator(slot=slot, serial=serial, name=name)


def accept(finding: Finding, **changes: Any) -> Finding:
    ask = {"reason": "seen on site", "actor": make_olga()} | changes
    return services.accept_finding(finding_id=finding.pk, **ask)


def live(node: Node) -> list[tuple[int, str, str]]:
    rows = node.accelerators.exclude(state="retired").order_by("slot")
    return list(rows.values_list("slot", "serial", "model__slug"))


MI = "amd-mi325x"


@pytest.mark.parametrize(
    ("seen", "kind", "after"),
    [
        pytest.param(
            [device(0, "A"), device(1, "Z")], "serial-differs", [(0, "A", MI), (1, "Z", MI)],
            id="replaced",
        ),
        pytest.param([device(0, "A")], "missing", [(0, "A", MI)], id="gone"),
        pytest.param(
            [device(0, "A"), device(1, "B"), device(2, "C")], "extra",
            [(0, "A", MI), (1, "B", MI), (2, "C", MI)], id="added",
        ),
        pytest.param(
            [device(0, "A"), device(4, "B")], "moved", [(0, "A", MI), (4, "B", MI)], id="moved",
        ),
        pytest.param(
            [device(0, "A"), device(1, "B", "AMD Instinct MI300X")], "model-differs",
            [(0, "A", MI), (1, "B", "amd-mi300x")], id="other-model",
        ),
    ],
)  # fmt: skip
def test_accepting_makes_the_plan_what_was_observed(
    seen: list[FoundAccelerator], kind: str, after: list[tuple[int, str, str]]
) -> None:
    make_model(slug="amd-mi300x", name="MI300X")
    node = make_node()
    for slot, serial in enumerate("AB"):
        node.accelerators.filter(slot=slot).update(serial=serial)
    observe(node, accelerators=tuple(seen))

    finding = accept(node.findings.get(kind=kind))
    observe(node, accelerators=tuple(seen))

    assert (finding.state, finding.reason) == ("accepted", "seen on site")
    assert live(node) == after
    assert not node.findings.filter(state="open").exists()


def test_accepting_writes_down_a_serial() -> None:
    node = make_node(accelerators=1)
    node.accelerators.update(serial="")
    observe(node, accelerators=(device(0, "A"),))

    accept(node.findings.get(kind="serial-known"))

    assert live(node) == [(0, "A", MI)]


def test_two_devices_that_changed_places_need_one_swap() -> None:
    node = make_node()
    first, second = (row.serial for row in node.accelerators.order_by("slot"))
    observe(node, accelerators=(device(0, second), device(1, first)))

    for finding in node.findings.filter(kind="moved"):
        accept(finding)

    assert live(node) == [(0, second, MI), (1, first, MI)]


def test_accepting_a_node_nobody_planned_adds_it() -> None:
    node = make_node()
    found = replace(found_node(node), hostname="gpu-new", accelerators=(device(0, "N"),))
    services.record_observation(cluster_id=node.cluster_id, found=found)

    finding = accept(Finding.objects.get(kind="unknown-node"))

    assert finding.node is not None
    assert (finding.node.hostname, live(finding.node)) == ("gpu-new", [(0, "N", MI)])


def test_another_vendor_cannot_be_accepted() -> None:
    node = make_node()
    observe(node, vendor="nvidia", accelerators=(device(0, "A", "NVIDIA L4"),))

    with pytest.raises(FindingNotAcceptableError, match="another vendor"):
        accept(node.findings.get(kind="vendor-differs"))

    assert node.findings.get().state == "open"


def test_a_serial_that_lives_elsewhere_leaves_plan_and_finding_as_they_were() -> None:
    elsewhere, node = make_node(accelerators=1), make_node(accelerators=1)
    before = live(node)
    observe(node, accelerators=(device(0, elsewhere.accelerators.get().serial),))

    with pytest.raises(SerialInUseError):
        accept(node.findings.get(kind="serial-differs"))

    assert live(node) == before
    assert node.findings.get().state == "open"


@pytest.mark.parametrize("answer", [services.override_finding, services.dismiss_finding])
def test_an_answered_difference_stays_closed_until_it_changes(answer: Any) -> None:
    node = make_node(accelerators=1)
    observe(node, accelerators=())
    finding = node.findings.get()

    answer(finding_id=finding.pk, reason="in repair", actor=make_olga())
    observe(node, accelerators=())
    assert not node.findings.filter(state="open").exists()

    observe(node, accelerators=(device(0, "Z"),))
    assert node.findings.get(state="open").kind == "serial-differs"


def test_an_answer_is_recorded_with_both_values() -> None:
    node, olga = make_node(accelerators=1), make_olga()
    observe(node, accelerators=())

    services.override_finding(finding_id=node.findings.get().pk, reason="dark", actor=olga)

    entry = AuditEntry.objects.get(action="finding.overridden")
    assert (entry.object_id, entry.actor, entry.reason) == (str(node.pk), olga, "dark")


def test_a_closed_finding_cannot_be_answered_again() -> None:
    node = make_node(accelerators=1)
    observe(node, accelerators=())
    finding = accept(node.findings.get())

    with pytest.raises(FindingClosedError, match="accepted"):
        accept(finding)


def test_ben_answers_nothing() -> None:
    node = make_node(accelerators=1)
    observe(node, accelerators=())

    with pytest.raises(NotPermittedError):
        accept(node.findings.get(), actor=make_ben())


@pytest.mark.django_db(transaction=True)
def test_of_six_answers_one_counts(at_the_same_time: Callable[..., list[str]]) -> None:
    node, olga = make_node(accelerators=1), make_olga()
    services.record_observation(
        cluster_id=node.cluster_id,
        found=found_node(
            node, accelerators=(device(0, "Z"),), seen_at=timezone.now() - timedelta(seconds=1)
        ),
    )
    finding = node.findings.get()

    outcomes = at_the_same_time(
        6, services.accept_finding, finding_id=finding.pk, reason="seen", actor=olga
    )

    assert outcomes == ["Finding"] + ["FindingClosedError"] * 5
    assert live(node) == [(0, "Z", MI)]
