"""Routers of a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.serving.errors import RouterTokenError
from controlplane.serving.models import Router
from controlplane.serving.services.declared import DeclarationError, register_declared
from tests.controlplane.serving.processes import secret_file

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(tmp_path: Path) -> dict[str, Any]:
    """A router that can be registered."""
    return {
        "name": "router-0", "admin_url": "https://r.example:8081/",
        "public_url": "http://r.example:8080",
        "token_reference": f"file:{secret_file(tmp_path / 'token')}",
    }  # fmt: skip


def file_of(folder: Path, rows: Any) -> Path:
    file = folder / "routers.json"
    file.write_text(json.dumps(rows))
    return file


def test_only_what_changed_is_written(tmp_path: Path, row: dict[str, Any]) -> None:
    other = row | {"name": "router-1", "admin_url": "https://s.example:8081"}
    assert register_declared(file_of(tmp_path, [row, other])) == ["router-0", "router-1"]
    written = AuditEntry.objects.count()

    moved = other | {"admin_url": "https://t.example:8081"}
    assert register_declared(file_of(tmp_path, [row, moved])) == ["router-1"]

    assert AuditEntry.objects.count() == written + 1
    assert register_declared(file_of(tmp_path, [row])) == []
    assert Router.objects.count() == 2


@pytest.mark.parametrize(
    "rows", [{}, None, "x", [1], [[]], [{"name": "a"}], ["name"], [None] * 201], ids=repr
)
def test_what_is_no_list_of_routers_is_refused(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(DeclarationError):
        register_declared(file_of(tmp_path, rows))


@pytest.mark.parametrize("change", [{"name": ""}, {"name": 3}, {"token": "secret"}], ids=repr)
def test_an_entry_has_its_texts_and_nothing_else(
    tmp_path: Path, row: dict[str, Any], change: dict[str, Any]
) -> None:
    with pytest.raises(DeclarationError, match="Entry 0 of the declared routers"):
        register_declared(file_of(tmp_path, [row | change]))


def test_a_name_that_is_too_long_is_refused_by_name(tmp_path: Path, row: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match=f"Router {'n' * 121} of "):
        register_declared(file_of(tmp_path, [row | {"name": "n" * 121}]))


def test_a_token_that_is_not_there_is_the_services_own_sentence(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    with pytest.raises(RouterTokenError):
        register_declared(file_of(tmp_path, [row | {"token_reference": "file:/nowhere/token"}]))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="nowhere cannot be read"):
        register_declared(tmp_path / "nowhere")
