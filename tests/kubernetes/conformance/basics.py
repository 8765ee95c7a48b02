"""Discovery, errors, validation and defaults."""

import copy

import pytest
from kubernetes import client

from tests.kubernetes.conformance.base import Lab, refused, wait_for


def version(lab: Lab) -> None:
    assert client.VersionApi(lab.api).get_code().git_version.startswith("v1.")


def discovery_dynamic_client(lab: Lab) -> None:
    found = lab.dynamic.resources.get(api_version="apps/v1", kind="Deployment")
    assert found.name == "deployments"
    assert found.namespaced


def namespace_create(lab: Lab) -> None:
    made = lab.core.create_namespace({"metadata": {"name": lab.namespace}})
    meta = made.metadata
    assert meta.uid
    assert meta.creation_timestamp
    assert meta.resource_version
    assert lab.core.read_namespace(lab.namespace).status.phase == "Active"


def create_twice_is_409(lab: Lab) -> None:
    said = refused(409, lab.core.create_namespace, {"metadata": {"name": lab.namespace}})
    assert said["reason"] == "AlreadyExists", said


def missing_is_404(lab: Lab) -> None:
    said = refused(404, lab.core.read_namespaced_service, "nope", lab.namespace)
    assert (said["reason"], said["details"]["kind"]) == ("NotFound", "services"), said


def into_missing_namespace_is_404(lab: Lab) -> None:
    body = {"metadata": {"name": "x"}}
    refused(404, lab.core.create_namespaced_config_map, "no-such-namespace", body)


def generate_name(lab: Lab) -> None:
    body = {"metadata": {"generateName": "cm-"}}
    name = lab.core.create_namespaced_config_map(lab.namespace, body).metadata.name
    assert name.startswith("cm-")
    assert len(name) > len("cm-")


def invalid_is_422(lab: Lab) -> None:
    body = lab.deployment("bad")
    body["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    said = refused(422, lab.apps.create_namespaced_deployment, lab.namespace, body)
    assert said["reason"] == "Invalid", said
    assert said["details"]["causes"], said


def bad_name_is_422(lab: Lab) -> None:
    body = {"metadata": {"name": "Not_A_DNS_Name"}}
    refused(422, lab.core.create_namespaced_config_map, lab.namespace, body)


def unknown_field_strict_is_400(lab: Lab) -> None:
    body = lab.deployment("strict")
    body["spec"]["replcas"] = 3
    path = f"/apis/apps/v1/namespaces/{lab.namespace}/deployments"
    answer = lab.ask("POST", path, body=body, query_params=[("fieldValidation", "Strict")])
    assert answer.status == 400
    assert b"replcas" in answer.data


def typed_client_refuses_unknown_field(lab: Lab) -> None:
    body = lab.deployment("strict")
    body["spec"]["replcas"] = 3
    with pytest.raises(ValueError, match="replcas"):
        lab.apps.create_namespaced_deployment(lab.namespace, body)


def defaults_filled_in(lab: Lab) -> None:
    body = lab.deployment("defaults", replicas=0)
    spec = lab.apps.create_namespaced_deployment(lab.namespace, body).spec
    assert (spec.strategy.type, spec.progress_deadline_seconds) == ("RollingUpdate", 600)
    service = {
        "metadata": {"name": "svc"},
        "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]},
    }
    made = lab.core.create_namespaced_service(lab.namespace, service)
    assert made.spec.cluster_ip
    assert made.spec.type == "ClusterIP"


def gpu_request_equals_limit(lab: Lab) -> None:
    # A Pod made right after its namespace is refused until the default ServiceAccount is there.
    accounts = lab.core.list_namespaced_service_account
    wait_for(
        lambda: [a for a in accounts(lab.namespace).items if a.metadata.name == "default"],
        "the default ServiceAccount",
    )
    pod = {
        "metadata": {"name": "gpureq"},
        "spec": lab.deployment()["spec"]["template"]["spec"],
    }
    made = lab.core.create_namespaced_pod(lab.namespace, pod)
    assert made.spec.containers[0].resources.requests["nvidia.com/gpu"] == "1"
    other = copy.deepcopy(pod)
    other["metadata"]["name"] = "gpubad"
    other["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "2"
    said = refused(422, lab.core.create_namespaced_pod, lab.namespace, other)
    assert "must be equal to nvidia.com/gpu limit" in said["message"]
    lab.core.delete_namespaced_pod("gpureq", lab.namespace, grace_period_seconds=0)


CHECKS = (
    version,
    discovery_dynamic_client,
    namespace_create,
    create_twice_is_409,
    missing_is_404,
    into_missing_namespace_is_404,
    generate_name,
    invalid_is_422,
    bad_name_is_422,
    unknown_field_strict_is_400,
    typed_client_refuses_unknown_field,
    defaults_filled_in,
    gpu_request_equals_limit,
)
