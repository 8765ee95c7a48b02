"""Many findings taken over at once: one refusal stays one, a second delivery changes nothing."""

from typing import Any

import pytest
from django.utils import timezone

from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import Operation
from inventory import services
from inventory.discovery.kubernetes import read_nodes
from inventory.errors import NothingToAcceptError, TooManyFindingsError, UnknownModelError
from inventory.models import Acceptance, Cluster, Finding, Node
from inventory.services import accepting, recording
from tests.factories import make_ben, make_olga
from tests.inventory.discovery.cluster_objects import h100, node
from tests.inventory.factories import make_cluster, make_model

pytestmark = pytest.mark.django_db


def unknown(*nodes: Any) -> Cluster:
    """A cluster that lists nodes nobody planned."""
    make_model(slug="nvidia-h100-sxm", vendor="nvidia", name="H100 SXM 80GB")
    make_model(slug="intel-gaudi3", vendor="intel-gaudi", name="Gaudi 3")
    cluster = make_cluster(kind="kubernetes")
    found = read_nodes(nodes, [], seen_at=timezone.now())
    recording.record_looks(cluster_id=cluster.pk, found=found)
    return cluster


def start(cluster: Cluster, **changes: Any) -> Operation:
    ask = {"kind": "unknown-node", "reason": "ours", "actor": make_olga()} | changes
    return services.start_accepting(cluster=cluster.slug, **ask)


def run(operation: Operation) -> Acceptance:
    services.run_accepting(operation_id=operation.pk)
    operation.refresh_from_db()
    return Acceptance.objects.get()


GAUDI = node("gaudi-1", capacity={"habana.ai/gaudi": "8"})


def test_nodes_are_added_with_their_accelerators_and_the_model_of_the_facts() -> None:
    cluster = unknown(h100("gpu-1"), h100("gpu-2", count=4))

    operation = start(cluster)
    row = run(operation)

    added = Node.objects.order_by("hostname").values_list("hostname", "node_type__slug", "vendor")
    assert list(added) == [
        ("gpu-1", "nvidia-h100-sxm-x8", "nvidia"), ("gpu-2", "nvidia-h100-sxm-x4", "nvidia"),
    ]  # fmt: skip
    assert (row.accepted, row.refused, operation.state) == (2, [], "succeeded")
    assert (operation.progress_done, operation.progress_total) == (2, 2)


def test_a_node_without_a_known_model_is_refused_with_its_sentence_and_the_others_go_on() -> None:
    row = run(start(unknown(GAUDI, h100("gpu-1"))))

    assert (row.accepted, row.refused_count) == (1, 1)
    assert row.refused[0]["hostname"] == "gaudi-1"
    assert "no known model" in row.refused[0]["detail"]
    assert Finding.objects.get(state="open").hostname == "gaudi-1"


def test_the_model_may_be_given_where_no_source_names_it() -> None:
    run(start(unknown(GAUDI), model="intel-gaudi3"))

    assert Node.objects.get().node_type.slug == "intel-gaudi3-x8"


def test_a_model_of_another_vendor_is_refused() -> None:
    row = run(start(unknown(GAUDI), model="nvidia-h100-sxm"))

    assert (row.accepted, Node.objects.count()) == (0, 0)
    assert "intel-gaudi" in row.refused[0]["detail"]


def test_a_second_delivery_changes_nothing() -> None:
    operation = start(unknown(h100("gpu-1")))
    run(operation)

    services.run_accepting(operation_id=operation.pk)

    assert Node.objects.count() == 1


def test_it_ends_between_two_findings_when_somebody_wants_it_to() -> None:
    operation = start(unknown(h100("gpu-1")))
    Operation.objects.update(cancel_requested_at=timezone.now())

    run(operation)

    assert (operation.state, Node.objects.count()) == ("cancelled", 0)


def test_only_open_findings_that_were_named_are_taken() -> None:
    cluster = unknown(h100("gpu-1"), h100("gpu-2"))
    first = Finding.objects.get(hostname="gpu-1")

    run(start(cluster, findings=[first.pk]))

    assert list(Node.objects.values_list("hostname", flat=True)) == ["gpu-1"]


def test_a_choice_that_is_empty_too_large_unknown_or_not_permitted_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = unknown(h100("gpu-1"), h100("gpu-2"))
    monkeypatch.setattr(accepting, "MOST_FINDINGS", 1)

    with pytest.raises(NothingToAcceptError):
        start(cluster, kind="")
    with pytest.raises(TooManyFindingsError, match="2 findings"):
        start(cluster)
    with pytest.raises(UnknownModelError):
        start(cluster, model="nobody")
    with pytest.raises(NotPermittedError):
        start(cluster, actor=make_ben())
    assert not Operation.objects.exists()
