"""Writing files so that a crash leaves the old or the whole content, never half of one."""

import fcntl
import os
from pathlib import Path
from typing import IO


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file in one step; it is readable by its owner only and on disk on return."""
    temporary = path.with_name(path.name + ".partial")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def append_bytes(path: Path, content: bytes) -> None:
    """Add to a file (made 0600 when it is not there); outlives a killed process.

    All of it is added or nothing: on a full disk the file is cut back before OSError is raised.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        before = os.fstat(descriptor).st_size
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make renames and deletions in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class StateFolderBusyError(Exception):
    """Another router uses the state folder; two would use the same sequence numbers."""


def claim_folder(folder: Path) -> IO[bytes]:
    """Create a state folder (0700) and lock it until the returned file is closed.

    Raises StateFolderBusyError.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = (folder / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise StateFolderBusyError(
            f"Another router process uses the state folder {folder}. Give each router its own."
        ) from error
    return lock
