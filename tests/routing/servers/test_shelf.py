"""What a router finds again after a restart."""

import json
from pathlib import Path

import pytest

from routing.core.document import DocumentError, encode_document
from routing.servers.shelf import Shelf, VersionNotNewerError
from tests.routing.servers.scripted import Engine, answers, document


def raw(*, version: int = 1, names: tuple[str, ...] = ("a", "b")) -> bytes:
    engines = [Engine(name, answers, port=9000 + ord(name)) for name in names]
    return encode_document(document(engines, version=version))


def shelf(folder: Path) -> Shelf:
    made = Shelf(folder)
    made.load()
    return made


def put(on: Shelf, content: bytes) -> None:
    checked, _ = on.check(content)
    on.keep(checked)


def test_a_kept_document_is_in_force_after_a_restart(tmp_path: Path) -> None:
    put(shelf(tmp_path), raw())

    again = shelf(tmp_path)

    assert [kept.document.version for kept in again.kept.values()] == [1]


def test_checking_changes_nothing(tmp_path: Path) -> None:
    made = shelf(tmp_path)

    made.check(raw())

    assert made.kept == {}
    assert list(tmp_path.iterdir()) == []


def test_the_same_document_is_known_and_an_older_one_refused(tmp_path: Path) -> None:
    made = shelf(tmp_path)
    put(made, raw(version=3))

    assert made.check(raw(version=3))[1] is True
    assert made.check(raw(version=4))[1] is False
    with pytest.raises(VersionNotNewerError):
        made.check(raw(version=2))


def test_a_wrong_document_is_refused_whole(tmp_path: Path) -> None:
    wrong = json.loads(raw()) | {"polcy": {}}

    with pytest.raises(DocumentError):
        shelf(tmp_path).check(json.dumps(wrong).encode())


def test_a_manual_drain_outlives_a_restart_and_ends_with_its_instance(tmp_path: Path) -> None:
    made = shelf(tmp_path)
    put(made, raw())
    assert made.drain("a") == ["main"]
    assert made.drain("nobody") == []
    assert {name for name, _ in shelf(tmp_path).drained} == {"a"}

    put(made, raw(version=2, names=("b",)))

    assert made.drained == set()
    assert shelf(tmp_path).drained == set()


def test_files_that_cannot_be_read_keep_nothing_else_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(shelf(tmp_path), raw())
    (tmp_path / "other.json").write_text("{")
    (tmp_path / "manual.drains").write_text("[[1]]")

    again = shelf(tmp_path)

    assert list(again.kept) == ["main"]
    assert again.drained == set()
    assert len(caplog.records) == 2
