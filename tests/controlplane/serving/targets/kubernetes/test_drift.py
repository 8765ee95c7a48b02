"""Differences between what was applied and what is there, by field, with who holds it."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.targets.kubernetes.drift import differences
from tests.controlplane.serving.targets.kubernetes.objects import Object, deployment, manifest


def container(found: Object) -> Any:
    return found["spec"]["template"]["spec"]["containers"][0]


def test_defaults_and_fields_of_others_are_no_drift() -> None:
    found = deployment()
    container(found)["imagePullPolicy"] = "IfNotPresent"
    container(found)["env"].append({"name": "SIDECAR", "value": "x"})
    found["spec"]["template"]["spec"]["containers"].append({"name": "proxy", "image": "p:1"})
    found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "4"

    assert differences(manifest(), found) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda found: found["spec"].update(replicas=3), ".spec.replicas"),
        (
            lambda found: container(found).update(image="other:1"),
            '.spec.template.spec.containers[{"name": "engine"}].image',
        ),
        (
            lambda found: container(found).update(command=["sleep", "1"]),
            '.spec.template.spec.containers[{"name": "engine"}].command[0]',
        ),
        (
            lambda found: container(found)["env"].clear(),
            '.spec.template.spec.containers[{"name": "engine"}].env[{"name": "A"}]',
        ),
        (lambda found: found["metadata"]["labels"].clear(), ".metadata.labels.consort.dev/pool"),
    ],
)
def test_a_change_is_found_at_its_path(change: Callable[[Object], Any], path: str) -> None:
    found = deployment()
    change(found)

    assert path in [row.path for row in differences(manifest(), found)]


@pytest.mark.parametrize(
    ("wanted", "found"), [("1Gi", "1024Mi"), ("1", 1), ("0.5", "500m"), ("2000", "2k")]
)
def test_the_same_amount_written_otherwise_is_no_drift(wanted: str, found: Any) -> None:
    one, other = manifest(), deployment()
    container(one)["resources"]["requests"]["memory"] = wanted
    container(other)["resources"]["requests"]["memory"] = found

    assert differences(one, other) == []


def test_who_holds_the_field_is_read_from_the_objects_books() -> None:
    found = deployment()
    container(found)["image"] = "other:1"
    fields = {
        "f:spec": {"f:template": {"f:spec": {"f:containers": {
            'k:{"name":"engine"}': {"f:image": {}}
        }}}}
    }  # fmt: skip
    found["metadata"]["managedFields"] = [
        {"manager": "consort", "operation": "Apply", "fieldsV1": fields},
        {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields},
        {"manager": "status-writer", "subresource": "status", "fieldsV1": fields},
        {"manager": 3, "fieldsV1": []},
    ]

    [row] = differences(manifest(), found)

    assert row.manager == "kubectl-edit"
    assert '"other:1" instead of "registry.example/vllm:1" (held by kubectl-edit)' in str(row)


@given(st.integers(0, 9), st.text(max_size=5))
def test_an_object_never_differs_from_itself(replicas: int, value: str) -> None:
    wanted = manifest(replicas=replicas)
    container(wanted)["env"][0]["value"] = value

    assert differences(wanted, copy.deepcopy(wanted)) == []
