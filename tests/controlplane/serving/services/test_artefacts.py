"""Files of models: who may say where they are, and how they get to nodes."""

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import OutboxEvent
from controlplane.serving import services
from controlplane.serving.errors import (
    ArtefactInUseError,
    ArtefactRefusedError,
    ArtefactUnusableError,
)
from controlplane.serving.models import ArtefactPresence
from controlplane.serving.plans import items_of
from controlplane.serving.services.artefacts import bring_files
from inventory.files import measure_folder
from inventory.models import NodeFolder
from tests.controlplane.serving.factories import (
    make_artefact,
    make_draft,
    make_fleet_node,
    make_pool,
    make_serving_model,
)
from tests.controlplane.serving.processes import EngineHost, until
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db


def test_an_artefact_is_added_with_audit_and_event() -> None:
    artefact = make_artefact(licence="Apache-2.0")

    entry = AuditEntry.objects.get(action="modelartefact.create")
    assert entry.after["uri"] == artefact.uri
    assert OutboxEvent.objects.filter(type="consort.modelartefact.created").exists()


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"uri": "models"}, ArtefactRefusedError, "uri of artefact"),
        ({"sha256": "abc"}, ValidationError, "64 hexadecimal"),
        ({"size_bytes": 0}, ValidationError, "above 0"),
        ({"kind": "ftp"}, ValidationError, "kind"),
    ],
)
def test_what_makes_no_sense_is_refused(
    fields: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make_artefact(**fields)


def test_a_person_without_the_right_adds_and_changes_nothing() -> None:
    artefact = make_artefact()

    with pytest.raises(NotPermittedError):
        make_artefact(slug="other", actor=make_ben())
    with pytest.raises(NotPermittedError):
        services.change_artefact(
            artefact_id=artefact.pk, reason="x", actor=make_ben(), sha256="b" * 64
        )
    with pytest.raises(NotPermittedError):
        services.retire_artefact(artefact_id=artefact.pk, reason="x", actor=make_ben())


def test_another_checksum_judges_what_was_seen_again() -> None:
    artefact, node = make_artefact(sha256="a" * 64), make_fleet_node()
    seen = ArtefactPresence.objects.create(
        artefact=artefact, node=node, state="wrong", sha256="b" * 64, size_bytes=5
    )

    services.change_artefact(
        artefact_id=artefact.pk, reason="typo", actor=make_olga(), sha256="b" * 64
    )

    seen.refresh_from_db()
    assert (seen.state, seen.size_bytes) == ("present", 5)


def test_another_place_or_revision_was_not_seen() -> None:
    artefact, node = make_artefact(), make_fleet_node()
    seen = ArtefactPresence.objects.create(
        artefact=artefact, node=node, state="present", sha256="b" * 64
    )

    services.change_artefact(artefact_id=artefact.pk, reason="new", actor=make_olga(), revision="2")

    seen.refresh_from_db()
    assert (seen.state, seen.sha256) == ("unknown", "")


def test_a_pool_takes_files_of_its_own_model_and_they_cannot_be_retired_then() -> None:
    pool, artefact = make_pool(), make_artefact()
    other = make_artefact(slug="other", model=services.load_catalogue("qwen3-8b")[0])
    old = make_artefact(slug="old", state="retired")

    for wrong in (other, old):
        with pytest.raises(ArtefactUnusableError):
            give(pool, wrong)
    give(pool, artefact)

    with pytest.raises(ArtefactInUseError, match=pool.slug):
        services.retire_artefact(artefact_id=artefact.pk, reason="x", actor=make_olga())
    give(pool, None)
    retired = services.retire_artefact(artefact_id=artefact.pk, reason="x", actor=make_olga())
    assert retired.state == "retired"


def test_a_pool_with_a_revision_takes_files_of_that_revision() -> None:
    pool = make_pool(model=make_serving_model(revision="r2"))

    with pytest.raises(ArtefactUnusableError, match="revision r1, not r2"):
        give(pool, make_artefact(revision="r1"))
    give(pool, make_artefact(slug="fits", revision="r2"))


def give(pool: Any, artefact: Any) -> None:
    services.set_pool_artefact(
        pool_id=pool.pk, artefact_id=artefact and artefact.pk, reason="test", actor=make_olga()
    )


def look(pool: Any, *nodes: Any) -> list[ArtefactPresence]:
    pool.refresh_from_db()
    return bring_files(pool, items_of(make_draft(pool, *nodes).diff), seconds=60)


def test_a_pool_without_files_brings_none() -> None:
    assert look(make_pool(), make_fleet_node()) == []


def test_engines_that_somebody_else_runs_have_their_own_files() -> None:
    pool = make_pool()
    give(pool, make_artefact())

    assert look(pool, make_fleet_node(kind="static")) == []


@pytest.mark.processes
def test_the_engine_host_counts_a_folder_and_says_when_it_is_another(
    engine_host: EngineHost, tmp_path: Path
) -> None:
    folder = tmp_path / "granite"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    counted = measure_folder(folder, most_seconds=9).sha256
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    give(pool, make_artefact(uri=str(folder), sha256=counted))

    [row] = until(lambda: [row for row in look(pool, node) if row.state != "checking"])
    (folder / "config.json").write_text("{ }")
    [other] = until(lambda: [row for row in look(pool, node) if row.state not in
                             {"checking", "present"}])  # fmt: skip

    assert (row.state, row.sha256, row.size_bytes) == ("present", counted, 2)
    assert (other.state, other.sha256 != counted) == ("wrong", True)


@pytest.mark.processes
def test_a_folder_that_is_not_there_is_missing(engine_host: EngineHost, tmp_path: Path) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    give(pool, make_artefact(uri=str(tmp_path / "nothing")))

    [row] = look(pool, node)

    assert row.state == "missing"
    assert "is no folder here" in row.detail


def test_a_target_that_does_not_answer_leaves_it_unknown_with_the_sentence(settings: Any) -> None:
    settings.ENGINE_HOST_URL = "http://127.0.0.1:1"
    pool = make_pool()
    give(pool, make_artefact())

    [row] = look(pool, make_fleet_node(accelerators=1))

    assert row.state == "unknown"
    assert "did not answer" in row.detail


def test_a_kind_that_a_target_cannot_look_at_is_told_by_the_nodes_agent() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    give(pool, make_artefact(kind="s3", uri="s3://models/x", endpoint="https://s3.local",
                             node_folder="/srv/x", sha256="c" * 64))  # fmt: skip

    [unable] = look(pool, node)
    NodeFolder.objects.create(
        node=node, path="/srv/x", sha256="c" * 64, size_bytes=9, seen_at="2026-12-01T00:00:00Z"
    )
    [told] = look(pool, node)

    assert unable.state == "unknown"
    assert "cannot tell of files of the kind s3" in unable.detail
    assert (told.state, told.size_bytes) == ("present", 9)
