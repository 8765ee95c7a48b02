"""What we must be allowed to do in a cluster, and how to ask about it. Pure."""

from dataclasses import dataclass
from typing import Any

from inventory.kubernetes.answers import checked_review


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource, in one namespace or (empty) in the whole cluster."""

    group: str
    """Empty for the core group."""
    resource: str
    """Plural, small letters; a subresource after a slash: `pods/log`."""
    verb: str
    namespace: str = ""

    def __str__(self) -> str:
        """Like `patch deployments.apps in serving`."""
        whole, *rest = self.resource.split("/", 1)
        named = f"{whole}.{self.group}" if self.group else whole
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {'/'.join([named, *rest])}{place}"


_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "get", "list", "patch", "watch")
_CLUSTER = (("", "nodes"), ("resource.k8s.io", "resourceslices"))
_READ_IN_NAMESPACE = (("", "events"), ("", "pods"), ("discovery.k8s.io", "endpointslices"))
_WRITTEN = (
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "secrets"),
    ("", "services"),
    ("apps", "deployments"),
)


def needed(namespaces: tuple[str, ...] = ("",)) -> tuple[Right, ...]:
    """What discovery needs in the cluster, and serving in each of these namespaces."""
    found = [Right(group, name, verb) for group, name in _CLUSTER for verb in _READ]
    for namespace in namespaces:
        for group, name in _READ_IN_NAMESPACE:
            found += [Right(group, name, verb, namespace) for verb in _READ]
        found.append(Right("", "pods/log", "get", namespace))
        for group, name in _WRITTEN:
            found += [Right(group, name, verb, namespace) for verb in _WRITE]
    return tuple(found)


def question(right: Right) -> dict[str, Any]:
    """The SelfSubjectAccessReview that asks about one right."""
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": right.verb,
        "namespace": right.namespace,
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }


def is_allowed(answer: Any) -> bool:
    """What the answered review says; AnswerError when it says nothing."""
    return checked_review(answer)
