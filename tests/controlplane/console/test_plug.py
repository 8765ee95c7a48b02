"""The panel that ends processes exists in simulated installations only."""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from controlplane.audit.models import AuditEntry
from controlplane.console import plug
from controlplane.metering.models import UsageEventRow
from tests.controlplane.console.scene import Scene


class NothingToEndError(Exception):
    """Stands in for the module's own."""


@pytest.fixture
def pulled(settings: Settings) -> Iterator[list[str]]:
    """An installation with a plug; the list fills with what was ended."""
    ended: list[str] = []

    def pull(kind: str, **address: Any) -> str:
        if kind == "router":
            raise NothingToEndError("No router runs.")
        ended.append(kind)
        return f"{kind}-1"

    module: Any = ModuleType("plug_of_the_test")
    module.choices = lambda: ("engine", "worker", "router")
    module.pull, module.NothingToEndError = pull, NothingToEndError
    sys.modules[module.__name__] = module
    settings.SIMULATED, settings.DEMO_PLUG = True, module.__name__
    yield ended
    del sys.modules[module.__name__]


def _record(sequence: int, outcome: str) -> None:
    now = datetime.now(UTC)
    UsageEventRow.objects.create(
        router="router-a", sequence=sequence, sha256=b"x", request_id=f"r{sequence}", hour=now,
        pool="granite-chat", document_version=1, policy="consort", tenant="t", project="p",
        key="k", model="m", received_at=now, ended_at=now, outcome=outcome, status=200, attempt=1,
        delivered=True, stream=False,
    )  # fmt: skip


def test_the_panel_counts_recorded_requests_and_names_the_kinds(
    scene: Scene, pulled: list[str]
) -> None:
    for sequence, outcome in enumerate(["ok", "ok", "failed"], start=1):
        _record(sequence, outcome)

    panel = plug.panel(scene.operator)

    assert panel is not None
    assert [kind for kind, _word in panel.kinds] == ["engine", "worker", "router"]
    assert (panel.total, panel.failed) == (3, 1)


def test_who_may_not_drain_sees_no_panel(scene: Scene, pulled: list[str]) -> None:
    assert plug.panel(scene.approver) is None


def test_a_real_installation_has_no_panel_and_no_address(
    scene: Scene, client_of: Callable[..., Client], settings: Settings
) -> None:
    settings.SIMULATED, settings.DEMO_PLUG = False, "deploy.demo.plug"

    response = client_of(scene.operator).post("/demo/plug", {"kind": "engine"})

    assert plug.panel(scene.operator) is None
    assert response.status_code == 404


def test_pulling_ends_one_process_and_is_recorded(
    scene: Scene, client_of: Callable[..., Client], pulled: list[str]
) -> None:
    response = client_of(scene.operator).post("/demo/plug", {"kind": "engine"}, follow=True)

    assert pulled == ["engine"]
    assert b"Ended without warning: engine-1." in response.content
    assert AuditEntry.objects.filter(action="demo.pull_plug", message="engine-1").exists()


def test_nothing_to_end_is_a_sentence(
    scene: Scene, client_of: Callable[..., Client], pulled: list[str]
) -> None:
    response = client_of(scene.operator).post("/demo/plug", {"kind": "router"}, follow=True)

    assert b"Nothing was ended: No router runs." in response.content


@pytest.mark.parametrize(("who", "status"), [("approver", 403), ("tenant_user", 403)])
def test_others_may_not_pull(
    scene: Scene, client_of: Callable[..., Client], pulled: list[str], who: str, status: int
) -> None:
    response = client_of(getattr(scene, who)).post("/demo/plug", {"kind": "engine"})

    assert response.status_code == status
    assert pulled == []


def test_an_unknown_kind_is_not_found(
    scene: Scene, client_of: Callable[..., Client], pulled: list[str]
) -> None:
    assert client_of(scene.operator).post("/demo/plug", {"kind": "db"}).status_code == 404
