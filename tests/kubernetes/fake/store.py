"""The objects of one fake cluster and the log of their changes, under one lock."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.kubernetes.fake.errors import expired
from tests.kubernetes.fake.kinds import KINDS, Kind

Object = dict[str, Any]
KEPT = 50_000
"""Changes that stay for watches; older ones are compacted away, as etcd does."""


@dataclass(frozen=True)
class Change:
    """One write: what the object was and what it is now; None: it was not, or is no more."""

    version: int
    kind: Kind
    before: Object | None
    after: Object | None


class Store:
    """Objects by kind, namespace and name. Stored objects are never changed in place."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.version = 1000
        self.oldest = 1000
        self._objects: dict[tuple[str, str], dict[tuple[str, str], Object]] = {}
        self._log: list[Change] = []
        self._own = threading.local()

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object, or None."""
        return self._of(kind).get((namespace, name))

    def all(self, kind: Kind, namespace: str = "") -> list[Object]:
        """All objects of a kind, in the order of namespace and name."""
        with self.lock:
            found = sorted(self._of(kind).items())
        return [item for (space, _), item in found if not namespace or space == namespace]

    def everything(self) -> Iterator[tuple[Kind, Object]]:
        """Each object with its kind."""
        for kind in KINDS:
            for item in list(self._of(kind).values()):
                yield kind, item

    def put(self, kind: Kind, item: Object) -> Object:
        """Store an object under the next resourceVersion; returns what was stored."""
        with self.changed:
            self.version += 1
            meta = item["metadata"] | {"resourceVersion": str(self.version)}
            item = item | {"metadata": meta}
            key = (meta.get("namespace", ""), meta["name"])
            before = self._of(kind).get(key)
            self._of(kind)[key] = item
            self._note(Change(self.version, kind, before, item))
            return item

    def drop(self, kind: Kind, item: Object) -> None:
        """Take an object away; its last state goes to the watches."""
        with self.changed:
            meta = item["metadata"]
            before = self._of(kind).pop((meta.get("namespace", ""), meta["name"]), None)
            if before is not None:
                self.version += 1
                self._note(Change(self.version, kind, before, None))

    def since(self, version: int, kind: Kind) -> list[Change]:
        """Changes of a kind after a version, oldest first. Raises 410 when they were compacted."""
        with self.lock:
            if version < self.oldest:
                raise expired(f"too old resource version: {version} ({self.version})")
            fresh: list[Change] = []
            for change in reversed(self._log):
                if change.version <= version:
                    break
                if change.kind is kind:
                    fresh.append(change)
            return fresh[::-1]

    def compact(self) -> None:
        """Forget the log: a watch or token from before now answers 410."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self._log.clear()
            self.changed.notify_all()

    def _of(self, kind: Kind) -> dict[tuple[str, str], Object]:
        return self._objects.setdefault((kind.group, kind.name), {})

    def writes_of_this_thread(self) -> int:
        """How many changes the calling thread has made."""
        return getattr(self._own, "writes", 0)

    def _note(self, change: Change) -> None:
        self._own.writes = self.writes_of_this_thread() + 1
        self._log.append(change)
        if len(self._log) > KEPT:
            del self._log[: KEPT // 2]
            self.oldest = self._log[0].version - 1
        self.changed.notify_all()
