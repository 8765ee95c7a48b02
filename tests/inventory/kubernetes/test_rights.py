"""What we must be allowed to do, and how a cluster is asked about it."""

import pytest

from inventory.kubernetes import rights
from inventory.kubernetes.errors import AnswerError


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        (rights.Right("", "nodes", "list"), "list nodes"),
        (rights.Right("apps", "deployments", "patch", "ai"), "patch deployments.apps in ai"),
        (rights.Right("", "pods/log", "get", "ai"), "get pods/log in ai"),
        (rights.Right("apps", "deployments/scale", "get"), "get deployments.apps/scale"),
    ],
)
def test_a_right_reads_like_a_command(right: rights.Right, expected: str) -> None:
    assert str(right) == expected


def test_a_question_about_a_subresource_names_it_apart() -> None:
    asked = rights.question(rights.Right("", "pods/log", "get", "ai"))

    assert asked["spec"]["resourceAttributes"] == {
        "resource": "pods",
        "subresource": "log",
        "verb": "get",
        "namespace": "ai",
    }


def test_each_namespace_is_asked_about_and_nodes_once() -> None:
    wanted = rights.needed(("a", "b"))

    assert len(wanted) == len(set(wanted))
    assert {right.namespace for right in wanted} == {"", "a", "b"}
    assert [right for right in wanted if right.resource == "nodes" and right.namespace] == []


def test_discovery_writes_nothing() -> None:
    writing = {"create", "patch", "delete"}

    assert not [r for r in rights.needed(()) if r.verb in writing]


def test_an_answer_that_says_nothing_is_not_taken_for_a_yes() -> None:
    with pytest.raises(AnswerError):
        rights.is_allowed({"status": {"allowed": "yes"}})
