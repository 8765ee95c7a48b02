"""The events of one watch: what is there, what changes, and how it ends."""

import time
from collections.abc import Callable, Iterator

from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.paths import Request, Target, selected, shown
from tests.kubernetes.fake.store import Change, Object, Store

WATCH_SECONDS = 300.0
LONGEST_WAIT = 1.0
"""Seconds after which a silent watch looks whether it is still wanted."""


class WatchStream:
    """Changes of the objects that a request selects."""

    def __init__(self, store: Store, target: Target, request: Request) -> None:
        self._store, self._target = store, target
        self._match = selected(request)
        self._initial = request.query.get("sendInitialEvents") == "true"
        seconds = float(request.query.get("timeoutSeconds") or WATCH_SECONDS)
        self._deadline = time.monotonic() + seconds
        with store.lock:
            started = request.query.get("resourceVersion", "")
            self._first: list[Object] = []
            self._version = int(started) if started.isdigit() else 0
            if self._initial or not self._version:
                self._version = store.version
                self._first = store.all(target.kind, target.namespace)

    def events(self, wanted: Callable[[], bool]) -> Iterator[Object]:
        """Events until the time is over or nobody wants more; an ERROR event ends them at once."""
        for item in self._first:
            if self._match(item):
                yield {"type": "ADDED", "object": shown(item, self._target)}
        if self._initial:
            yield self._bookmark()
        try:
            while time.monotonic() < self._deadline and wanted():
                for change in self._next(wanted):
                    yield from self._event(change)
        except ApiError as error:
            yield {"type": "ERROR", "object": error.body()}

    def _next(self, wanted: Callable[[], bool]) -> list[Change]:
        with self._store.changed:
            changes = self._store.since(self._version, self._target.kind)
            self._version = self._store.version
            if not changes and wanted():
                left = self._deadline - time.monotonic()
                self._store.changed.wait(max(0.0, min(LONGEST_WAIT, left)))
            return changes

    def _event(self, change: Change) -> Iterator[Object]:
        item = change.after or change.before or {}
        if self._target.namespace and item["metadata"].get("namespace") != self._target.namespace:
            return
        was = change.before is not None and self._match(change.before)
        now = change.after is not None and self._match(change.after)
        if was or now:
            kind = "MODIFIED" if was and now else ("ADDED" if now else "DELETED")
            meta = item["metadata"] | {"resourceVersion": str(change.version)}
            yield {"type": kind, "object": shown(item | {"metadata": meta}, self._target)}

    def _bookmark(self) -> Object:
        meta = {
            "resourceVersion": str(self._version),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
        item = {"kind": self._target.kind.name, "apiVersion": self._target.api_version}
        return {"type": "BOOKMARK", "object": item | {"metadata": meta}}
