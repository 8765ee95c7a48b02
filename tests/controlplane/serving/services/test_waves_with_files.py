"""A wave of a pool that names its model's files: they are right before anything drains."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from controlplane.serving import services
from controlplane.serving.models import ChangePlan, Endpoint, Pool, RoleAssignment, Wave
from controlplane.serving.services.pool_settings import change_slo
from inventory.files import measure_folder
from tests.controlplane.serving.boundary import ScriptedRouter
from tests.controlplane.serving.factories import (
    make_applying,
    make_artefact,
    make_fleet_node,
    make_pool,
)
from tests.controlplane.serving.processes import EngineHost
from tests.factories import make_olga

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def finish(plan: ChangePlan, *, seconds: float = 60) -> ChangePlan:
    deadline = time.monotonic() + seconds
    while plan.state == ChangePlan.State.APPLYING and time.monotonic() < deadline:
        services.reconcile_pool(pool_id=plan.pool_id, patience_seconds=1.0)
        plan.refresh_from_db()
    return plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "granite"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def give_files(pool: Pool, **fields: Any) -> None:
    artefact = make_artefact(**fields)
    services.set_pool_artefact(
        pool_id=pool.pk, artefact_id=artefact.pk, reason="test", actor=make_olga()
    )


def test_right_files_are_counted_before_the_drain_and_the_wave_goes_on(
    engine_host: EngineHost, scripted_router: ScriptedRouter, folder: Path
) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    sha256 = measure_folder(folder, most_seconds=9).sha256
    give_files(pool, uri=str(folder), sha256=sha256)

    plan = finish(make_applying(pool, node))

    assert (plan.state, plan.outcome) == ("succeeded", "Waves done: 1.")
    assert Wave.objects.get().detail["files"] == {node.hostname: sha256}
    assert Endpoint.objects.get().state == "ready"


def test_wrong_files_stop_the_wave_before_anything_drains(
    engine_host: EngineHost, scripted_router: ScriptedRouter, folder: Path
) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    finish(make_applying(pool, node, role="both"))
    [before] = Endpoint.objects.all()
    give_files(pool, uri=str(folder), sha256="e" * 64)
    documents = pool.documents.count()

    plan = finish(make_applying(pool, node, role="decode"))

    assert plan.state == "rolled_back"
    assert f"on {node.hostname} are not the stated ones" in plan.outcome
    assert f"stated {'e' * 64}" in plan.outcome
    [after] = Endpoint.objects.all()
    assert (after.pk, after.state, after.role) == (before.pk, "ready", "both")
    assert pool.documents.count() == documents
    assert list(RoleAssignment.objects.values_list("role", "valid_to")) == [("both", None)]


def test_files_that_come_late_are_waited_for(
    engine_host: EngineHost, scripted_router: ScriptedRouter, folder: Path, tmp_path: Path
) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    give_files(
        pool, uri=str(tmp_path / "late"), sha256=measure_folder(folder, most_seconds=9).sha256
    )
    plan = make_applying(pool, node)

    services.reconcile_pool(pool_id=pool.pk, patience_seconds=1.0)
    wave = Wave.objects.get()
    shutil.copytree(folder, tmp_path / "late")
    finish(plan)

    assert (wave.step, "missing" in wave.detail["waits_for"]) == ("prefetch", True)
    assert plan.state == "succeeded"


def test_files_that_never_come_turn_the_plan_around_after_its_time(
    engine_host: EngineHost, scripted_router: ScriptedRouter, tmp_path: Path
) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    give_files(pool, uri=str(tmp_path / "never"))
    plan = make_applying(pool, node)
    ChangePlan.objects.update(prefetch_seconds=0.5)

    finish(plan)

    assert plan.state == "rolled_back"
    assert "were not on" in plan.outcome
    assert not RoleAssignment.objects.filter(valid_to=None).exists()


def test_releasing_an_accelerator_needs_no_files(
    engine_host: EngineHost, scripted_router: ScriptedRouter, tmp_path: Path
) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    finish(make_applying(pool, node, role="both"))
    give_files(pool, uri=str(tmp_path / "never"))

    plan = finish(make_applying(pool, node, role=""))

    assert plan.state == "succeeded"
    assert not Endpoint.objects.exclude(state="gone").exists()


def test_the_way_back_brings_no_files(
    engine_host: EngineHost, scripted_router: ScriptedRouter, folder: Path
) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    give_files(pool, uri=str(folder))
    plan = finish(make_applying(pool, node, role="both"))
    change_slo(pool_id=pool.pk, changes={"slo_ttft_p95_seconds": 5.0}, actor=make_olga())
    shutil.rmtree(folder)

    services.rollback_plan(plan_id=plan.pk, actor=make_olga(), reason="test")
    plan.refresh_from_db()
    finish(plan)

    assert plan.state == "rolled_back"
    assert not Endpoint.objects.exclude(state="gone").exists()
