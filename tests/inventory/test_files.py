"""Size and checksum of folders, the same as the shell's."""

import subprocess
from pathlib import Path

import pytest

from inventory import files
from inventory.files import FolderError, measure_folder

SHELL = (
    "find -L . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1"
)


def fill(folder: Path) -> Path:
    (folder / "a b" / "z").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "a b" / "weights-1.safetensors").write_bytes(bytes(range(256)) * 40)
    (folder / "a b" / "z" / "é.txt").write_text("x")
    (folder / "a.b").write_text("")
    (folder / "link.bin").symlink_to(folder / "config.json")
    return folder


def test_the_checksum_is_the_one_that_the_shell_counts(tmp_path: Path) -> None:
    fill(tmp_path)

    found = measure_folder(tmp_path, most_seconds=60)

    shell = subprocess.run(
        ["bash", "-c", SHELL], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found.sha256 == shell.stdout.strip()
    assert (found.files, found.size_bytes) == (5, 10240 + 2 + 2 + 1)
    assert found.read_bytes_per_second is None


@pytest.mark.parametrize("change", ["content", "name", "more", "fewer"])
def test_any_change_of_files_changes_the_checksum(tmp_path: Path, change: str) -> None:
    before = measure_folder(fill(tmp_path), most_seconds=60)

    if change == "content":
        (tmp_path / "config.json").write_text("[]")
    elif change == "name":
        (tmp_path / "a.b").rename(tmp_path / "a.c")
    elif change == "more":
        (tmp_path / "new").write_text("")
    else:
        (tmp_path / "a.b").unlink()

    assert measure_folder(tmp_path, most_seconds=60).sha256 != before.sha256


def test_a_folder_that_cannot_be_counted_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "a\nb").write_text("x")
    monkeypatch.setattr(files, "MOST_FILES", 3)
    many = tmp_path / "many"
    many.mkdir()
    for number in range(4):
        (many / str(number)).write_text("x")

    for name, words in (
        ("nothing", "is not there"), ("file", "is no folder"), ("empty", "holds no file"),
        ("odd", "line break"), ("many", "more than 3 files"),
    ):  # fmt: skip
        with pytest.raises(FolderError, match=words) as caught:
            measure_folder(tmp_path / name, most_seconds=60)
        assert caught.value.is_missing == (name == "nothing")


def test_reading_ends_after_the_time_that_was_given(tmp_path: Path) -> None:
    ticks = iter(range(1000))

    with pytest.raises(FolderError, match="after the time"):
        measure_folder(fill(tmp_path), most_seconds=2, clock=lambda: float(next(ticks)))


def test_speed_is_known_of_a_folder_that_is_large_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "CHUNK_BYTES", 1024)
    ticks = iter(range(1000))

    found = measure_folder(fill(tmp_path), most_seconds=900, clock=lambda: float(next(ticks)))

    assert found.read_bytes_per_second == int(found.size_bytes / found.seconds)
