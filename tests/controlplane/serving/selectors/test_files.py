"""How long nodes take to load a model, and who sees files."""

import pytest
from django.utils import timezone

from controlplane.serving.models import ArtefactPresence
from controlplane.serving.selectors.files import (
    artefacts_for_viewer,
    load_times,
    presences_for_viewer,
)
from inventory.models import NodeFolder
from tests.controlplane.serving.factories import (
    make_artefact,
    make_draft,
    make_fleet_node,
    make_pool,
)
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db


def test_without_a_speed_the_time_is_unknown_and_never_zero() -> None:
    node = make_fleet_node()

    found = load_times(make_pool(), {str(node.pk)})

    assert found["seconds"] == {node.hostname: None}
    assert found["longest_seconds"] is None


def test_a_measured_speed_wins_over_an_entered_one() -> None:
    pool = make_pool()
    pool.artefact = make_artefact(size_bytes=20 * 10**9)
    entered = make_fleet_node(storage_bytes_per_second=10**9)
    measured = make_fleet_node(storage_bytes_per_second=10**9)
    NodeFolder.objects.create(
        node=measured, path="/srv", read_bytes_per_second=2 * 10**9, seen_at=timezone.now()
    )
    ArtefactPresence.objects.create(
        artefact=pool.artefact, node=measured, read_bytes_per_second=4 * 10**9
    )

    found = load_times(pool, {str(entered.pk), str(measured.pk)})

    assert found["seconds"] == {entered.hostname: 20.0, measured.hostname: 5.0}
    assert found["sources"] == {entered.hostname: "entered", measured.hostname: "measured"}
    assert found["longest_seconds"] == 20.0


def test_one_node_without_a_speed_makes_the_longest_time_unknown() -> None:
    known, unknown = make_fleet_node(storage_bytes_per_second=10**9), make_fleet_node()

    found = load_times(make_pool(), {str(known.pk), str(unknown.pk)})

    assert found["seconds"][known.hostname] is not None
    assert found["longest_seconds"] is None


def test_a_plan_tells_the_time_to_load() -> None:
    node = make_fleet_node(storage_bytes_per_second=10**9)
    pool = make_pool()

    plan = make_draft(pool, node)

    assert plan.effects["load"]["longest_seconds"] == pool.model.weight_bytes / 10**9


def test_a_person_of_a_tenant_sees_no_files() -> None:
    ArtefactPresence.objects.create(artefact=make_artefact(), node=make_fleet_node())

    assert not artefacts_for_viewer(make_ben()).exists()
    assert not presences_for_viewer(make_ben()).exists()
    assert artefacts_for_viewer(make_olga()).count() == 1
    assert presences_for_viewer(make_olga()).count() == 1
