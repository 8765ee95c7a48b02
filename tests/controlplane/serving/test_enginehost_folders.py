"""Folders that the engine host counts: once, again when they change, never twice at a time."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.serving.enginehost import folders
from controlplane.serving.enginehost.folders import FolderPathError, FolderWatch
from tests.controlplane.serving.processes import until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def counted(watch: FolderWatch, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = until(
        lambda: found if (found := watch.look(str(path)))["sight"] != "checking" else None
    )
    return found


def large(path: Path) -> Path:
    """A folder that takes long enough to read to be looked at meanwhile."""
    path.mkdir(exist_ok=True)
    with (path / "weights.bin").open("wb") as file:
        file.truncate(600 * 1024 * 1024)
    return path


def test_a_folder_is_counted_once_and_again_when_it_changes(folder: Path) -> None:
    watch = FolderWatch()

    first, same = counted(watch, folder), counted(watch, folder)
    (folder / "config.json").write_text("{ }")
    other = counted(watch, folder)

    assert first is same
    assert (first["sight"], other["sight"]) == ("there", "there")
    assert first["sha256"] != other["sha256"]


def test_looks_return_while_a_folder_is_read(tmp_path: Path) -> None:
    watch = FolderWatch()

    looks = [watch.look(str(large(tmp_path / "a")))["sight"] for _ in range(5)]
    found = counted(watch, tmp_path / "a")

    assert looks == ["checking"] * 5
    assert found["size_bytes"] == 600 * 1024 * 1024
    assert found["read_bytes_per_second"] > 0


def test_a_folder_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    watch = FolderWatch()

    assert counted(watch, tmp_path)["detail"].endswith("holds no file.")
    assert watch.look(str(tmp_path / "nothing"))["sight"] == "missing"


@pytest.mark.parametrize("path", [None, 3, "models", "/a\x00b"])
def test_what_is_no_absolute_path_is_refused(path: Any) -> None:
    with pytest.raises(FolderPathError, match="absolute"):
        FolderWatch().look(path)


def test_more_folders_than_may_wait_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MOST_FOLDERS", 2)
    watch = FolderWatch()
    places = [large(tmp_path / name) for name in ("a", "b", "c")]

    watch.look(str(places[0]))
    watch.look(str(places[1]))

    with pytest.raises(FolderPathError, match="More than 2"):
        watch.look(str(places[2]))
    counted(watch, places[1])
