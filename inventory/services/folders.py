"""Keeps what agents say of folders on their nodes."""

from inventory.discovery.base import FoundFolder, FoundNode
from inventory.models import Node, NodeFolder

SMALLEST_BYTES = 8 * 1024 * 1024
"""Below it, the time to read a folder says nothing of the storage."""


def keep_folders(node: Node, found: FoundNode) -> None:
    """Write each folder of a report, unless a later report spoke of it; call in a transaction."""
    known = {row.path: row for row in NodeFolder.objects.filter(node=node)}
    for folder in found.folders:
        row = known.get(folder.path) or NodeFolder(node=node, path=folder.path)
        if row.seen_at is not None and row.seen_at >= found.seen_at:
            continue
        row.size_bytes, row.files, row.sha256 = folder.size_bytes, folder.files, folder.sha256
        row.read_bytes_per_second = _speed(folder)
        row.error, row.seen_at = folder.error, found.seen_at
        row.save()


def _speed(folder: FoundFolder) -> int | None:
    if not folder.seconds or folder.size_bytes is None or folder.size_bytes < SMALLEST_BYTES:
        return None
    return int(folder.size_bytes / folder.seconds)
