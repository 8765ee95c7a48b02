"""Who may talk to whom, and what the worker may do in a cluster."""

from typing import Any

import pytest

from inventory.kubernetes import rights
from tests.deploy.helm.chart import NAMES, component, of_kind, workloads

WITH_POLICIES = [name for name in NAMES if name != "bare"]
GRANTED_VERBS = {"create", "delete", "get", "list", "patch", "watch"}


def policies(name: str) -> dict[str, dict[str, Any]]:
    return {component(one): one["spec"] for one in of_kind(name, "NetworkPolicy")}


@pytest.mark.parametrize("name", WITH_POLICIES)
def test_nothing_passes_that_is_not_named(name: str) -> None:
    found = policies(name)
    everything = found.pop("flows")

    assert everything == {
        "podSelector": {
            "matchLabels": {
                "app.kubernetes.io/name": "consort",
                "app.kubernetes.io/instance": "consort",
            }
        },
        "policyTypes": ["Ingress", "Egress"],
    }
    assert set(workloads(name)) <= set(found)
    for part, pod in workloads(name).items():
        labels = pod["metadata"]["labels"]
        assert found[part]["podSelector"]["matchLabels"].items() <= labels.items()


def test_policies_can_be_left_to_somebody_else() -> None:
    assert policies("bare") == {}


@pytest.mark.parametrize("name", WITH_POLICIES)
def test_nobody_connects_to_a_part_that_serves_nobody(name: str) -> None:
    found = policies(name)

    assert {part for part, one in found.items() if "ingress" in one} == {"web", "router"}


def ports(rules: list[dict[str, Any]]) -> set[int]:
    return {port["port"] for rule in rules for port in rule["ports"]}


def test_a_router_reaches_engines_and_routers_and_no_store() -> None:
    assert ports(policies("full")["router"]["egress"]) == {53, 7946, 8000, 5557, 5558}


def test_only_the_worker_reaches_api_servers_and_engines() -> None:
    found = policies("full")

    assert {part for part, one in found.items() if 6443 in ports(one.get("egress", []))} == {
        "worker"
    }
    to_engines = {part for part, one in found.items() if 5557 in ports(one.get("egress", []))}
    assert to_engines == {"worker", "router"}


def test_flows_can_be_narrow() -> None:
    """With all values given, only the DNS of the cluster is found by a name."""
    for part, one in policies("full").items():
        for rule in one.get("egress", []):
            assert rule["to"], part
        for rule in one.get("ingress", []):
            assert rule["from"], part


def granted(name: str, namespace: str) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for role in of_kind(name, "Role")
        if role["metadata"]["namespace"] == namespace
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("namespace", ["models", "research"])
def test_the_worker_may_what_a_test_of_the_connection_asks_for(namespace: str) -> None:
    needed = {
        (one.group, one.resource, one.verb)
        for one in rights.needed((namespace,))
        if one.namespace == namespace
    }

    assert needed <= granted("full", namespace)


def test_discovery_may_what_it_needs_in_the_whole_cluster() -> None:
    needed = {(one.group, one.resource, one.verb) for one in rights.needed(()) if not one.namespace}
    (role,) = of_kind("least", "ClusterRole")
    given = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert needed <= given
    assert {resource for _, resource, _ in given} == {"nodes", "deviceclasses", "resourceslices"}


def test_no_right_in_the_whole_cluster_changes_anything() -> None:
    (role,) = of_kind("full", "ClusterRole")

    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert not any("secrets" in rule["resources"] for rule in role["rules"])


@pytest.mark.parametrize("name", NAMES)
def test_no_right_is_everything(name: str) -> None:
    for role in of_kind(name, "Role", "ClusterRole"):
        for rule in role["rules"]:
            words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert "*" not in words
            assert set(rule["verbs"]) <= GRANTED_VERBS
            assert not {"pods/exec", "roles", "rolebindings", "nodes/proxy"} & set(
                rule["resources"]
            )


@pytest.mark.parametrize("name", NAMES)
def test_rights_belong_to_the_worker_alone(name: str) -> None:
    for binding in of_kind(name, "RoleBinding", "ClusterRoleBinding"):
        (subject,) = binding["subjects"]
        assert subject["kind"] == "ServiceAccount"
        assert subject["name"].endswith("-worker")
        assert not subject["name"].endswith("-live-worker")


def test_rights_that_are_not_wanted_are_not_given() -> None:
    given = granted("ingress", "models")

    assert of_kind("ingress", "ClusterRole") == []
    assert not [one for one in given if one[1] == "secrets"]
    assert not [one for one in given if one[0] == "gateway.networking.k8s.io"]
