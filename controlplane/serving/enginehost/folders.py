"""Counts folders of model files of this machine, one at a time, and remembers what it counted.

A folder that did not change since (number of files, their sizes and times) is not read again.
"""

import os
import threading
from pathlib import Path
from typing import Any

from inventory.files import MOST_FILES, FolderError, measure_folder

MOST_FOLDERS = 64
LONGEST_SECONDS = 7200.0
_UNKNOWN = {"size_bytes": None, "sha256": "", "read_bytes_per_second": None, "detail": ""}


class FolderPathError(Exception):
    """The path cannot be counted here; the sentence says why."""


class FolderWatch:
    """What is known of folders; looks return at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: dict[str, tuple[object, dict[str, Any]]] = {}
        self._busy: set[str] = set()
        self._turn = threading.Lock()

    def look(self, path: Any) -> dict[str, Any]:
        """What was counted, or that it is being counted. Raises FolderPathError."""
        if not isinstance(path, str) or not os.path.isabs(path) or "\x00" in path:
            raise FolderPathError("path is an absolute folder.")
        mark = _mark(Path(path))
        if mark is None:
            return {**_UNKNOWN, "sight": "missing", "detail": f"{path} is no folder here."}
        with self._lock:
            known = self._counted.get(path)
            if known is not None and known[0] == mark:
                return known[1]
            if path not in self._busy:
                self._take_up(path)
        return {**_UNKNOWN, "sight": "checking"}

    def _take_up(self, path: str) -> None:
        if len(self._busy) >= MOST_FOLDERS:
            raise FolderPathError(f"More than {MOST_FOLDERS} folders wait to be counted.")
        while len(self._counted) >= MOST_FOLDERS:
            del self._counted[next(iter(self._counted))]
        self._busy.add(path)
        # A daemon: the end of the host does not wait for terabytes.
        threading.Thread(target=self._count, args=(path,), name="folder", daemon=True).start()

    def _count(self, path: str) -> None:
        with self._turn:
            counted = _counted(path)
        with self._lock:
            self._busy.discard(path)
            self._counted[path] = counted


def _counted(path: str) -> tuple[object, dict[str, Any]]:
    """The folder's mark and what was counted. The mark is of before: a change meanwhile shows."""
    mark = _mark(Path(path))
    try:
        found = measure_folder(Path(path), most_seconds=LONGEST_SECONDS)
    except FolderError as error:
        return mark, {**_UNKNOWN, "sight": "failed", "detail": str(error)}
    return mark, {
        "sight": "there",
        "size_bytes": found.size_bytes,
        "sha256": found.sha256,
        "read_bytes_per_second": found.read_bytes_per_second,
        "detail": "",
    }


def _mark(folder: Path) -> object | None:
    """Number of files, sum of sizes and latest change; None if there is no folder."""
    if not folder.is_dir():
        return None
    count, size, latest = 0, 0, 0
    for place, _folders, files in os.walk(folder):
        for name in files:
            try:
                found = os.stat(os.path.join(place, name))
            except OSError:
                continue
            count, size = count + 1, size + found.st_size
            latest = max(latest, found.st_mtime_ns, found.st_ctime_ns)
            if count > MOST_FILES:
                return (count, size, latest)
    return (count, size, latest)
