"""Files are read whole, bounded, and told by name when they cannot be."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from controlplane.cli import files
from controlplane.cli.errors import USAGE, CliError


def test_a_file_and_what_is_piped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"piped")))

    assert files.read(str(tmp_path / "f")) == b"abc"
    assert files.read("-") == b"piped"


@pytest.mark.parametrize("name", ["/no/such/file", "/", "a\0b"])
def test_what_cannot_be_read_is_said(name: str) -> None:
    with pytest.raises(CliError) as caught:
        files.read(name)

    assert caught.value.code == USAGE
    assert "cannot be read" in str(caught.value)


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(CliError) as caught:
        files.read("/dev/zero")

    assert "more than" in str(caught.value)


def test_files_named_in_a_file_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"abc")
    read = files.reader(tmp_path)

    assert read("t") == b"abc"
    with pytest.raises(FileNotFoundError):
        read("gone")
    with pytest.raises(OSError, match="null"):
        read("a\0b")


def test_a_folder_is_read_as_the_lines_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1-2.json").write_bytes(b"a")
    (tmp_path / "open.jsonl").write_bytes(b"b\n")
    (tmp_path / "lock").write_bytes(b"c")

    assert files.reader(tmp_path)(".") == b"a\nb\n"
    monkeypatch.setattr(files, "MOST_NAMED_BYTES", 2)
    with pytest.raises(OSError, match="more than 2 bytes"):
        files.reader(tmp_path)(".")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"

    files.write_whole(path, b"one")
    files.write_whole(path, b"two")

    assert path.read_bytes() == b"two"
    assert [one.name for one in path.parent.iterdir()] == ["report.json"]


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    for path in (tmp_path / "file" / "report.json", tmp_path):
        with pytest.raises(CliError, match="cannot be written"):
            files.write_whole(path, b"x")
