"""Size and SHA-256 of a folder of files; no Django, so agents and engine hosts use it alike.

The checksum is the one of the list of files that this command prints in the folder, so that anybody
can count it again without this product:

    find -L . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_FILES = 100_000
CHUNK_BYTES = 8 * 1024 * 1024


class FolderError(Exception):
    """The folder cannot be counted; the sentence says why."""

    def __init__(self, sentence: str, *, is_missing: bool = False) -> None:
        super().__init__(sentence)
        self.is_missing = is_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFolder:
    """What is in a folder."""

    size_bytes: int
    files: int
    sha256: str
    seconds: float
    """Time that it took to read all of it."""

    @property
    def read_bytes_per_second(self) -> int | None:
        """Speed of reading and counting; None for a folder too small to say."""
        if self.size_bytes < CHUNK_BYTES or self.seconds <= 0:
            return None
        return int(self.size_bytes / self.seconds)


def measure_folder(
    folder: Path, *, most_seconds: float, clock: Callable[[], float] = time.monotonic
) -> MeasuredFolder:
    """Read all files of a folder once. Links to files count as files, links to folders do not.

    Raises FolderError: it is not there, holds more than MOST_FILES files or a name that
    `sha256sum` would write in another way, or takes longer than `most_seconds`.
    """
    if not folder.is_dir():
        there = "is no folder" if folder.exists() else "is not there"
        raise FolderError(f"{folder} {there}.", is_missing=not folder.exists())
    started = clock()
    listing, size, count = hashlib.sha256(), 0, 0
    for name in _names(folder):
        digest, length = _file(folder / name, until=started + most_seconds, clock=clock)
        listing.update(f"{digest}  ./{name}\n".encode("utf-8", "surrogateescape"))
        size, count = size + length, count + 1
    if count == 0:
        raise FolderError(f"{folder} holds no file.")
    return MeasuredFolder(
        size_bytes=size, files=count, sha256=listing.hexdigest(), seconds=clock() - started
    )


def _names(folder: Path) -> list[str]:
    """Paths of all files below the folder, in the order of their bytes."""
    names: list[str] = []
    for name in _walk(folder):
        if "\n" in name or "\\" in name or "\r" in name:
            raise FolderError(f"{folder} holds a file whose name has a line break or a backslash.")
        names.append(name)
        if len(names) > MOST_FILES:
            raise FolderError(f"{folder} holds more than {MOST_FILES} files.")
    return sorted(names, key=lambda name: f"./{name}".encode("utf-8", "surrogateescape"))


def _walk(folder: Path) -> Iterator[str]:
    try:
        for place, _folders, files in os.walk(folder, onerror=_raise):
            for name in files:
                path = Path(place, name)
                if path.is_file():
                    yield str(path.relative_to(folder))
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error.strerror}.") from error


def _raise(error: OSError) -> None:
    raise error


def _file(path: Path, *, until: float, clock: Callable[[], float]) -> tuple[str, int]:
    """SHA-256 and length of a file."""
    digest, length = hashlib.sha256(), 0
    try:
        with path.open("rb") as content:
            while chunk := content.read(CHUNK_BYTES):
                digest.update(chunk)
                length += len(chunk)
                if clock() > until:
                    raise FolderError(f"{path} was reached after the time that was given.")
    except OSError as error:
        raise FolderError(f"{path} cannot be read: {error.strerror}.") from error
    return digest.hexdigest(), length
