"""A request, the resource that its path names, and what the caller may do there."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.kinds import Kind
from tests.kubernetes.fake.selectors import by_fields, by_labels
from tests.kubernetes.fake.store import Object

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


@dataclass(frozen=True)
class Request:
    """One HTTP request, as far as the API looks at it."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def manager(self) -> str:
        """The field manager: what the query says, else the program in User-Agent."""
        given = self.query.get("fieldManager")
        agent = self.headers.get("user-agent", "unknown")
        return given if given is not None else agent.partition("/")[0]

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be stored."""
        return self.query.get("dryRun") == "All"


@dataclass(frozen=True)
class Target:
    """The resource that a path names."""

    kind: Kind
    version: str
    namespace: str
    name: str
    subresource: str

    @property
    def api_version(self) -> str:
        """The version that the path asks for."""
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version


class NoPathError(ApiError):
    """No such path."""

    def __init__(self) -> None:
        super().__init__(404, "the server could not find the requested resource")


def find_target(api: Api, path: str) -> Target:
    """The resource behind a path. Raises 404."""
    parts = path.strip("/").split("/")
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise NoPathError
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    kind = api.catalogue.find(group, version, plural)
    if kind is None or (namespace and not kind.namespaced):
        raise NoPathError
    return Target(kind, version, namespace, name, subresource)


@dataclass
class Rights:
    """What the caller may not do: (verb, group, resource), "*" for every verb."""

    denied: set[tuple[str, str, str]] = field(default_factory=set)

    def deny(self, verb: str, resource: str, group: str = "") -> None:
        """Take a right away."""
        self.denied.add((verb, group, resource))

    def may(self, verb: str, group: str, resource: str) -> bool:
        """Whether the caller may do this."""
        return not {(verb, group, resource), ("*", group, resource)} & self.denied


def is_watch(request: Request) -> bool:
    """Whether the request wants the changes, not the state."""
    return request.method == "GET" and request.query.get("watch") in {"1", "true", "True"}


def selected(request: Request) -> Callable[[Object], bool]:
    """Whether an object fits the request's selectors."""
    labels = by_labels(request.query.get("labelSelector", ""))
    fields = by_fields(request.query.get("fieldSelector", ""))
    return lambda item: labels(item) and fields(item)


def shown(item: Object, target: Target) -> Object:
    """The object in the version that the path asks for."""
    return (
        item
        if item["apiVersion"] == target.api_version
        else item | {"apiVersion": target.api_version}
    )
