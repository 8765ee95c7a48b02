"""One cluster's API, in plain dictionaries: read, apply, delete, watch.

Writes carry the field manager `consort` and never force: a field of somebody else stays theirs
and the apply raises FieldConflictError. Unknown fields are refused by the server, not dropped.
Nothing is tried again here; every method raises errors of `inventory.kubernetes.errors`.
"""

import copy
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from inventory.kubernetes import answers, labels, rights
from inventory.kubernetes.answers import Event
from inventory.kubernetes.connection import Connection
from inventory.kubernetes.errors import (
    AnswerError,
    ClusterError,
    ClusterUnavailableError,
    ExpiredError,
    KindMissingError,
    NotFoundError,
)
from inventory.kubernetes.kinds import Resource, path_of, resources_of, root, versions_of

if TYPE_CHECKING:
    from inventory.kubernetes.wire import Call, Wire

TIMEOUT_SECONDS = 10.0
PAGE = 200
"""Objects asked for at once."""
MOST_ITEMS = 20_000
"""Objects of one list; a cluster of 5,000 nodes with 4 engines each has as many."""
MOST_RESTARTS = 2
KINDS_SECONDS = 600.0
"""For so long the paths of kinds are remembered."""
MOST_LOG_BYTES = 1024 * 1024
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_STRICT = {"fieldManager": labels.MANAGER, "fieldValidation": "Strict"}


# Written before the class, whose method `list` hides the builtin.
Resources = list[Resource]


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole list and where a watch goes on from."""

    items: list[dict[str, Any]]
    resource_version: str


class ClusterClient:
    """A client of one API server; may be shared by threads. `timeout` is seconds of one call."""

    def __init__(self, connection: Connection, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self.connection = connection
        self.timeout = timeout
        self.answered_at: datetime | None = None
        """When the API server last gave an answer, also a refusal."""
        self.failure: ClusterUnavailableError | None = None
        """The last failure of the whole server."""
        self._gives_up = False
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Resources]] = {}

    def for_one_run(self) -> "ClusterClient":
        """The same connections, for one piece of work that gives up at the first failure.

        Once the server did not answer, further calls raise at once instead of waiting each for
        its time-out. `answered_at` and `failure` begin anew.
        """
        run = copy.copy(self)
        run.answered_at, run.failure, run._gives_up = None, None, True  # noqa: SLF001 - its own copy
        run.__dict__["_wire"] = self._wire
        return run

    @cached_property
    def _wire(self) -> "Wire":
        from inventory.kubernetes.wire import Wire

        return Wire(self.connection, timeout=self.timeout)

    def version(self) -> str:
        """The API server's version, like `v1.36.2`."""
        return answers.checked_version(self._json("GET", "/version"))

    def kinds(self) -> frozenset[tuple[str, str]]:
        """(apiVersion, kind) of all that the cluster serves, asked anew.

        A group whose own server is down is left out: what it serves is not there at present.
        """
        versions = ["v1", *versions_of(self._json("GET", "/apis"))]
        found: set[tuple[str, str]] = set()
        for version in versions:
            try:
                listed = self._learn(version)
            except NotFoundError:
                continue
            except ClusterUnavailableError as error:
                if error.status is None or version == "v1":
                    raise
                continue
            found |= {(resource.api_version, resource.kind) for resource in listed}
        return frozenset(found)

    def get(
        self, api_version: str, kind: str, name: str, namespace: str | None = None
    ) -> dict[str, Any]:
        """The object. Raises NotFoundError, also as KindMissingError."""
        path = self._path(api_version, kind, name, namespace)
        return answers.checked_object(self._json("GET", path), kind=kind, name=name)

    def list(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        most: int = MOST_ITEMS,
    ) -> Listing:
        """All objects that the selectors ask for, in one state of the cluster.

        `labels` and `fields` are selectors as the API writes them; without a namespace, of all.
        Begins anew when a page's place expired. Raises AnswerError above `most` objects.
        """
        path = self._path(api_version, kind, None, namespace)
        query = {"limit": PAGE, "labelSelector": labels, "fieldSelector": fields}
        for _ in range(MOST_RESTARTS):
            with suppress(ExpiredError):
                return self._list(path, query, (api_version, kind), most)
        return self._list(path, query, (api_version, kind), most)

    def apply(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Server-side apply; the object as the server then has it.

        With `dry_run` the server checks and fills in, and stores nothing. Raises
        FieldConflictError where somebody else manages a field: nothing was changed then.
        """
        api_version, kind, name, namespace = _identity(manifest)
        path = self._path(api_version, kind, name, namespace)
        query = {**_STRICT, "force": False} | ({"dryRun": "All"} if dry_run else {})
        answer = self._json("PATCH", path, query, manifest, _APPLY)
        return answers.checked_object(answer, kind=kind, name=name)

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create; ClusterRefusedError with the reason AlreadyExists when it is there."""
        api_version, kind, name, namespace = _identity(manifest)
        path = self._path(api_version, kind, None, namespace)
        answer = self._json("POST", path, _STRICT, manifest)
        return answers.checked_object(answer, kind=kind, name=name)

    def merge_patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        body: Mapping[str, Any],
        *,
        namespace: str | None = None,
    ) -> dict[str, Any]:
        """Change single fields; None removes one. `metadata.resourceVersion` guards the write."""
        path = self._path(api_version, kind, name, namespace)
        answer = self._json("PATCH", path, _STRICT, body, _MERGE)
        return answers.checked_object(answer, kind=kind, name=name)

    def delete(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
    ) -> bool:
        """Ask for deletion, with what it owns; False when it was not there.

        True says that the deletion began: finalizers may hold the object. With `uid` another
        object of the same name stays and StaleError is raised.
        """
        path = self._path(api_version, kind, name, namespace)
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        }
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        try:
            with self._heard():
                self._wire.read(self._call("DELETE", path, None, body))
        except KindMissingError:
            raise
        except NotFoundError:
            return False
        return True

    def watch(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str = "",
        resource_version: str,
        seconds: float,
    ) -> Iterator[Event]:
        """Changes after `resource_version`, for at most about `seconds`.

        Ends quietly when the time is over or the connection is cut; bookmarks come too. Raises
        ExpiredError when the place is gone: list again.
        """
        path = self._path(api_version, kind, None, namespace)
        query = {
            "watch": True,
            "allowWatchBookmarks": True,
            "labelSelector": labels,
            "resourceVersion": resource_version,
            "timeoutSeconds": max(1, int(seconds)),
        }
        call = self._call("GET", path, query, in_list=True)
        with self._heard():
            for line in self._wire.lines(call, seconds + 1):
                yield answers.checked_event(line, kind=kind)

    def logs(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        bytes: int = 64 * 1024,  # noqa: A002
        previous: bool = False,
    ) -> str:
        """The last bytes that a container wrote; `previous`: in its life before this one."""
        wanted = min(bytes, MOST_LOG_BYTES)
        path = f"{self._path('v1', 'Pod', pod, namespace)}/log"
        query = {
            "container": container,
            "tailLines": max(10, wanted // 40),
            "limitBytes": MOST_LOG_BYTES * 4,
            "previous": previous,
        }
        with self._heard():
            body = self._wire.read(self._call("GET", path, query))
        return body[-wanted:].decode(errors="replace")

    def may(self, wanted: Iterable[rights.Right]) -> tuple[rights.Right, ...]:
        """Those of the rights that we do not have, in the order given."""
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return tuple(
            right
            for right in wanted
            if not rights.is_allowed(self._json("POST", path, None, rights.question(right)))
        )

    def close(self) -> None:
        """Close the connections that are kept; the client may be used again."""
        self._wire.close()

    def _list(
        self, path: str, query: Mapping[str, Any], what: tuple[str, str], most: int
    ) -> Listing:
        items: list[dict[str, Any]] = []
        token = ""
        while True:
            asked = {**query, **({"continue": token} if token else {})}
            call = self._call("GET", path, asked, in_list=True)
            with self._heard():
                answer = self._wire.json(call)
            page = answers.checked_page(answer, api_version=what[0], kind=what[1])
            items += page.items
            if len(items) > most:
                raise AnswerError(f"There are more than {most} objects of the kind {what[1]}.")
            if not page.next:
                return Listing(items, page.resource_version)
            if page.next == token or not page.items:
                raise AnswerError(f"The list of {what[1]} does not come to an end.")
            token = page.next

    def _path(self, api_version: str, kind: str, name: str | None, namespace: str | None) -> str:
        for text in (name, namespace):
            if text is not None and not labels.is_object_name(text):
                raise ValueError(f"No object and no namespace can have the name {text!r}.")
        return path_of(self._resource(api_version, kind), name, namespace)

    def _resource(self, api_version: str, kind: str) -> Resource:
        """Where a kind is; asks the cluster when it is not known, or no longer for certain."""
        with self._lock:
            learned, known = self._known.get(api_version, (-KINDS_SECONDS, []))
        fresh = time.monotonic() - learned < KINDS_SECONDS
        found = _pick(known, kind) if fresh else None
        if found is None:
            try:
                found = _pick(self._learn(api_version), kind)
            except NotFoundError:
                raise KindMissingError(api_version, kind) from None
        if found is None:
            raise KindMissingError(api_version, kind)
        return found

    def _learn(self, api_version: str) -> Resources:
        answer = self._json("GET", root(api_version))
        learned = resources_of(api_version, answer)
        with self._lock:
            self._known[api_version] = (time.monotonic(), learned)
        return learned

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Any:
        with self._heard():
            return self._wire.json(self._call(method, path, query, body, content_type))

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Notes whether the server answered; raises at once after a failure in the same run."""
        if self.failure is not None and self._gives_up:
            raise ClusterUnavailableError(str(self.failure), retry_after=self.failure.retry_after)
        try:
            yield
        except ClusterUnavailableError as error:
            if error.is_of_the_whole_server:
                self.failure = error
            raise
        except ClusterError:
            self.answered_at = datetime.now(UTC)
            raise
        self.answered_at = datetime.now(UTC)

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        *,
        in_list: bool = False,
    ) -> "Call":
        from inventory.kubernetes.wire import Call

        asked = {name: value for name, value in (query or {}).items() if value != ""}
        return Call(method, path, asked, body, content_type, in_list)


def _pick(known: Resources, kind: str) -> Resource | None:
    return next((resource for resource in known if resource.kind == kind), None)


def _identity(manifest: Mapping[str, Any]) -> tuple[str, str, str, str | None]:
    """apiVersion, kind, name and namespace of a manifest of ours."""
    meta = manifest["metadata"]
    return manifest["apiVersion"], manifest["kind"], meta["name"], meta.get("namespace")
