"""Server-side apply and who owns which field (`metadata.managedFields`)."""

from dataclasses import dataclass
from typing import Any

from tests.kubernetes.fake.errors import ApiError, field_conflict
from tests.kubernetes.fake.fields import (
    ITSELF,
    Path,
    from_fields_v1,
    leaves,
    merged,
    shown,
    to_fields_v1,
    without,
)

Object = dict[str, Any]
_ABSENT = object()


@dataclass(frozen=True)
class Writer:
    """Who writes, through which door, at what time."""

    manager: str
    api_version: str
    at: str
    subresource: str = ""

    def entry(self, operation: str, paths: set[Path]) -> dict[str, Any]:
        """The entry of `managedFields`."""
        facts = {
            "manager": self.manager,
            "operation": operation,
            "apiVersion": self.api_version,
            "time": self.at,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(paths),
        }
        return facts | ({"subresource": self.subresource} if self.subresource else {})


def apply(live: Object | None, wish: Object, writer: Writer, *, force: bool) -> Object:
    """The object after this manager's apply. Raises ApiError 409 for fields of others."""
    if wish["metadata"].get("managedFields"):
        raise ApiError(400, "metadata.managedFields must be nil")
    wanted = leaves(wish)
    current = leaves(live) if live else {}
    entries = _entries(live)
    mine = (writer.manager, "Apply", writer.subresource)
    before = entries.pop(mine, (None, set()))
    disputed = {
        key: {p for p in paths & wanted.keys() if p in current and current[p] != wanted[p]}
        for key, (_, paths) in entries.items()
    }
    if not force and (conflicts := _conflicts(entries, disputed)):
        raise field_conflict(conflicts)
    for key, lost in disputed.items():
        entry, paths = entries[key]
        entries[key] = (_narrowed(entry, paths, paths - lost), paths - lost)
    others = set().union(*(paths for _, paths in entries.values()), set())
    result = merged(live, wish) if live else merged({}, wish)
    # What was a leaf may be a parent now (`emptyDir: {}`), and what is emptied is still wished for.
    parents = {path[:n] for path in others | wanted.keys() for n in range(1, len(path))}
    gone = before[1] - wanted.keys() - others - parents
    result = merged(_removed(result, gone, others), wish)
    same = before[0] if before[1] == set(wanted) else None
    entries[mine] = (same or writer.entry("Apply", set(wanted)), set(wanted))
    return _with_entries(result, entries)


def update(live: Object | None, new: Object, writer: Writer) -> Object:
    """The object after a create, replace or patch: what changed now belongs to the writer."""
    before, after = leaves(live) if live else {}, leaves(new)
    changed = {path for path, value in after.items() if before.get(path, _ABSENT) != value}
    entries = _entries(live)
    mine = (writer.manager, "Update", writer.subresource)
    own = entries.pop(mine, (None, set()))
    gone = before.keys() - after.keys()
    kept = {
        key: (_narrowed(entry, paths, paths - changed - gone), paths - changed - gone)
        for key, (entry, paths) in entries.items()
    }
    paths = (own[1] | changed) - gone
    if paths:
        same = own[0] if paths == own[1] and not changed else None
        kept[mine] = (same or writer.entry("Update", paths), paths)
    return _with_entries(new, kept)


def _entries(live: Object | None) -> dict[tuple[str, str, str], tuple[Any, set[Path]]]:
    if not live:
        return {}
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): (
            entry,
            from_fields_v1(entry["fieldsV1"]),
        )
        for entry in live["metadata"].get("managedFields") or []
    }


def _narrowed(entry: Any, before: set[Path], after: set[Path]) -> Any:
    return entry if before == after else entry | {"fieldsV1": to_fields_v1(after)}


def _with_entries(item: Object, entries: dict[Any, tuple[Any, set[Path]]]) -> Object:
    listed = [entry for entry, paths in entries.values() if paths]
    order = sorted(listed, key=lambda e: (e["operation"], e.get("time", ""), e["manager"]))
    return item | {"metadata": item["metadata"] | {"managedFields": order}}


def _conflicts(entries: Any, disputed: dict[Any, set[Path]]) -> list[tuple[str, str]]:
    found = []
    for key, paths in disputed.items():
        manager, operation, subresource = key
        who = f'"{manager}"'
        if subresource:
            who += f' with subresource "{subresource}"'
        if operation == "Update":
            who += f" using {entries[key][0]['apiVersion']} at {entries[key][0]['time']}"
        found.extend((who, shown(path)) for path in sorted(paths))
    return found


def _removed(item: Object, paths: set[Path], others: set[Path]) -> Object:
    """Without the leaves that nobody owns any more; whole list items go first."""
    items = {path for path in paths if path[-1] == ITSELF}
    for path in sorted(items, key=len, reverse=True):
        if not any(other[: len(path) - 1] == path[:-1] for other in others):
            item = without(item, path)
    for path in sorted(paths - items):
        item = without(item, path)
    return item
