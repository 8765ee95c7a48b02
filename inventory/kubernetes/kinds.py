"""Which kinds an API server serves, and the path of each; read from its discovery documents."""

import re
from dataclasses import dataclass
from typing import Any

from inventory.kubernetes.answers import mapping
from inventory.kubernetes.errors import AnswerError

MOST_VERSIONS = 300
"""Group versions of one cluster; one with many operators has about 100."""
MOST_RESOURCES = 500
_WORD = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_KIND = re.compile(r"[A-Za-z0-9]{1,100}")


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind and the word that stands for it in paths."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool


def root(api_version: str) -> str:
    """Path under which the resources of an API version are."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def path_of(resource: Resource, name: str | None, namespace: str | None) -> str:
    """Path of an object, or of the list when there is no name.

    A namespaced kind without a namespace means all of them.
    """
    within = f"/namespaces/{namespace}" if resource.namespaced and namespace else ""
    ending = f"/{name}" if name else ""
    return f"{root(resource.api_version)}{within}/{resource.plural}{ending}"


def versions_of(groups: Any) -> list[str]:
    """API versions named by the answer of `/apis`, in its order."""
    entries = mapping(groups).get("groups")
    if not isinstance(entries, list):
        raise AnswerError("The list of API groups has no groups.")
    found: list[str] = []
    for entry in entries:
        for version in _list(entry, "versions"):
            name = version.get("groupVersion") if isinstance(version, dict) else None
            if not isinstance(name, str) or not _is_version(name):
                raise AnswerError("The list of API groups names a version that is none.")
            found.append(name)
    if len(found) > MOST_VERSIONS:
        raise AnswerError(f"The cluster names {len(found)} API versions; {MOST_VERSIONS} are read.")
    return found


def resources_of(api_version: str, listed: Any) -> list[Resource]:
    """Kinds of one API version; subresources are left out."""
    entries = mapping(listed).get("resources")
    if not isinstance(entries, list) or len(entries) > MOST_RESOURCES:
        raise AnswerError(f"The resources of {api_version} are missing or more than allowed.")
    found = [_resource(api_version, entry) for entry in entries]
    return [resource for resource in found if resource is not None]


def _resource(api_version: str, entry: Any) -> Resource | None:
    named = entry if isinstance(entry, dict) else {}
    plural, kind, namespaced = named.get("name"), named.get("kind"), named.get("namespaced")
    if isinstance(plural, str) and "/" in plural:
        return None
    if not isinstance(plural, str) or not _WORD.fullmatch(plural):
        raise AnswerError(f"A resource of {api_version} has no name that a path can hold.")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind) or not isinstance(namespaced, bool):
        raise AnswerError(f"The resource {plural} of {api_version} does not say what it is.")
    return Resource(api_version, kind, plural, namespaced)


def _list(entry: Any, key: str) -> list[Any]:
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, list):
        raise AnswerError("The list of API groups has a group without versions.")
    return value


def _is_version(name: str) -> bool:
    return all(_WORD.fullmatch(part) for part in name.split("/", 1))
