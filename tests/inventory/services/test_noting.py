"""Findings follow what observations differ in."""

from datetime import timedelta

import pytest
from django.utils import timezone

from inventory import services
from inventory.models import Finding
from inventory.services.noting import Look, note
from tests.factories import make_olga
from tests.inventory.factories import found_node, make_node
from tests.inventory.services.test_observing import observe

pytestmark = pytest.mark.django_db


def test_nothing_to_note_opens_and_closes_nothing() -> None:
    node = make_node()

    assert note(node.cluster_id, []) == 0


def test_a_finding_moves_to_the_newest_observation_and_is_resolved_at_the_look_without_it() -> None:
    node = make_node()
    short = found_node(node).accelerators[:1]
    observe(node, accelerators=short, seen_at=timezone.now() - timedelta(seconds=9))
    later = observe(node, accelerators=short, seen_at=timezone.now() - timedelta(seconds=5))
    assert node.findings.get().observation == later

    note(node.cluster_id, [Look(later, timezone.now(), [])])

    finding = node.findings.get()
    assert (finding.state, finding.closed_at is not None) == ("resolved", True)


def test_a_node_that_was_added_by_hand_resolves_the_finding_of_any_source() -> None:
    node = make_node()
    found = found_node(node)
    node.state, node.retired_at = "retired", timezone.now()
    node.save()
    services.record_observation(cluster_id=node.cluster_id, found=found)
    finding = Finding.objects.get(kind="unknown-node")
    services.override_finding(finding_id=finding.pk, reason="not ours", actor=make_olga())
    Finding.objects.update(state="open", closed_at=None)

    again = make_node(hostname=node.hostname, cluster=node.cluster, accelerators=0)
    observe(again, accelerators=(), seen_at=timezone.now())

    assert Finding.objects.get(kind="unknown-node").state == "resolved"
