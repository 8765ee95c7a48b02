"""Files that a crash leaves whole."""

import resource
from pathlib import Path

import pytest

from routing.servers.files import (
    StateFolderBusyError,
    append_bytes,
    claim_folder,
    write_durably,
)


def test_a_file_is_replaced_whole_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_durably(path, b"a long first content")

    write_durably(path, b"second")

    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_bytes_are_added_to_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "file"

    append_bytes(path, b"one ")
    append_bytes(path, b"two")

    assert path.read_bytes() == b"one two"
    assert path.stat().st_mode & 0o777 == 0o600


def test_bytes_that_do_not_fit_leave_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    append_bytes(path, b"one ")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6, limits[1]))

    try:
        with pytest.raises(OSError, match="too large"):
            append_bytes(path, b"two, three")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    append_bytes(path, b"four")

    assert path.read_bytes() == b"one four"


def test_a_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "state"

    with (
        claim_folder(folder),
        pytest.raises(StateFolderBusyError, match="Give each router its own"),
    ):
        claim_folder(folder)
    with claim_folder(folder):
        mode = folder.stat().st_mode & 0o777

    assert mode == 0o700
