"""Discovery documents say which kinds there are and where."""

from typing import Any

import pytest

from inventory.kubernetes import kinds
from inventory.kubernetes.errors import AnswerError

DEPLOYMENT = kinds.Resource("apps/v1", "Deployment", "deployments", namespaced=True)
NODE = kinds.Resource("v1", "Node", "nodes", namespaced=False)


@pytest.mark.parametrize(
    ("resource", "name", "namespace", "expected"),
    [
        (DEPLOYMENT, "a", "n", "/apis/apps/v1/namespaces/n/deployments/a"),
        (DEPLOYMENT, None, "n", "/apis/apps/v1/namespaces/n/deployments"),
        (DEPLOYMENT, None, None, "/apis/apps/v1/deployments"),
        (NODE, "a", "n", "/api/v1/nodes/a"),
    ],
)
def test_path(resource: kinds.Resource, name: str | None, namespace: str | None, expected: str):
    assert kinds.path_of(resource, name, namespace) == expected


def test_subresources_are_left_out() -> None:
    listed = {
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
        ]
    }

    assert kinds.resources_of("apps/v1", listed) == [DEPLOYMENT]


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "..", "kind": "Pod", "namespaced": True},
        {"name": "pods?x=1", "kind": "Pod", "namespaced": True},
        {"name": "pods", "kind": 5, "namespaced": True},
        {"name": "pods", "kind": "Pod"},
        "pods",
    ],
)
def test_a_resource_that_lies_is_refused(entry: Any) -> None:
    with pytest.raises(AnswerError):
        kinds.resources_of("v1", {"resources": [entry]})


def test_versions_come_in_the_order_of_the_answer() -> None:
    groups = {
        "groups": [
            {"versions": [{"groupVersion": "apps/v1"}]},
            {"versions": [{"groupVersion": "b.example/v2"}, {"groupVersion": "b.example/v1"}]},
        ]
    }

    assert kinds.versions_of(groups) == ["apps/v1", "b.example/v2", "b.example/v1"]


@pytest.mark.parametrize(
    "groups",
    [
        None,
        {},
        {"groups": 5},
        {"groups": [{}]},
        {"groups": [{"versions": [{"groupVersion": "a/../../v1"}]}]},
        {"groups": [{"versions": [{"groupVersion": 1}]}]},
        {"groups": [{"versions": [{"groupVersion": "a/v1"}] * 301}]},
    ],
)
def test_groups_that_lie_are_refused(groups: Any) -> None:
    with pytest.raises(AnswerError):
        kinds.versions_of(groups)
