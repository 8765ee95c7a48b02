"""Patches, server-side apply, subresources, deletion."""

import json

from kubernetes import client

from tests.kubernetes.conformance.base import APPLY, Lab, is_gone, refused, wait_for

MERGE, JSON = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
NOBODY = "00000000-0000-0000-0000-000000000000"


def stale_replace_is_409(lab: Lab) -> None:
    stale = lab.config_map("occ", data={"a": "1"}).metadata.resource_version
    lab.core.patch_namespaced_config_map("occ", lab.namespace, {"data": {"a": "2"}})
    body = {"metadata": {"name": "occ", "resourceVersion": stale}, "data": {"a": "3"}}
    said = refused(409, lab.core.replace_namespaced_config_map, "occ", lab.namespace, body)
    assert said["reason"] == "Conflict", said


def delete_with_precondition_is_409(lab: Lab) -> None:
    lab.config_map("pre")
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=NOBODY))
    delete = lab.core.delete_namespaced_config_map
    refused(409, delete, "pre", lab.namespace, body=options)


def merge_patch_null_removes(lab: Lab) -> None:
    lab.config_map("mp", data={"a": "1", "b": "2"})
    patch = lab.core.patch_namespaced_config_map
    found = patch("mp", lab.namespace, {"data": {"a": None}}, _content_type=MERGE)
    assert found.data == {"b": "2"}, found.data


def json_patch(lab: Lab) -> None:
    lab.config_map("jp", data={"a": "1"})
    steps = [{"op": "replace", "path": "/data/a", "value": "9"}]
    patch = lab.core.patch_namespaced_config_map
    found = patch("jp", lab.namespace, steps, _content_type=JSON)
    assert found.data == {"a": "9"}, found.data


def strategic_merge_keeps_containers(lab: Lab) -> None:
    lab.apps.create_namespaced_deployment(lab.namespace, lab.deployment("smp", replicas=0))
    containers = [{"name": "server", "image": "x:2"}]
    body = {"spec": {"template": {"spec": {"containers": containers}}}}
    patch = lab.apps.patch_namespaced_deployment
    found = patch("smp", lab.namespace, body, _content_type=STRATEGIC)
    container = found.spec.template.spec.containers[0]
    assert container.image == "x:2"
    assert container.args
    assert container.resources.limits


def ssa_creates(lab: Lab) -> None:
    entries = lab.apply(lab.deployment()).metadata.managedFields
    assert (entries[0].manager, entries[0].operation) == ("control-plane", "Apply"), entries


def ssa_same_again_changes_nothing(lab: Lab) -> None:
    first = lab.apply(lab.deployment()).metadata
    second = lab.apply(lab.deployment()).metadata
    assert first.generation == second.generation


def ssa_conflict_is_409(lab: Lab) -> None:
    lab.apply(lab.deployment())
    meta = {"name": "vllm", "namespace": lab.namespace}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta}
    body |= {"spec": {"replicas": 7}}
    said = refused(409, lab.apply, body, manager="autoscaler")
    (found,) = said["details"]["causes"]
    assert found["reason"] == "FieldManagerConflict"
    assert found["field"] == ".spec.replicas"
    assert '"control-plane"' in found["message"]
    assert lab.apply(body, manager="autoscaler", force=True).spec.replicas == 7


def ssa_omitted_field_is_removed(lab: Lab) -> None:
    meta = {"name": "ssa", "namespace": lab.namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    lab.apply(body | {"data": {"a": "1", "b": "2"}})
    found = lab.apply(body | {"data": {"a": "1"}})
    assert found.data.to_dict() == {"a": "1"}, found.data


def ssa_keyed_list_merge(lab: Lab) -> None:
    meta = {"name": "merge", "namespace": lab.namespace}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": meta}
    lab.apply(body | {"spec": {"ports": [{"port": 80, "name": "http"}]}}, manager="a")
    ports = [{"port": 9090, "name": "metrics"}]
    found = lab.apply(body | {"spec": {"ports": ports}}, manager="b")
    assert len(found.spec.ports) == 2, found.spec.ports


def ssa_typed_client(lab: Lab) -> None:
    found = lab.apps.patch_namespaced_deployment(
        "typed",
        lab.namespace,
        lab.deployment("typed", replicas=0),
        field_manager="cp",
        force=True,
        _content_type=APPLY,
    )
    assert found.metadata.managed_fields[0].operation == "Apply"


def dry_run_all_stores_nothing(lab: Lab) -> None:
    body = {"metadata": {"name": "dry"}}
    lab.core.create_namespaced_config_map(lab.namespace, body, dry_run="All")
    refused(404, lab.core.read_namespaced_config_map, "dry", lab.namespace)


def scale_subresource(lab: Lab) -> None:
    patch = lab.apps.patch_namespaced_deployment_scale
    patch("smp", lab.namespace, {"spec": {"replicas": 1}})
    assert lab.apps.read_namespaced_deployment("smp", lab.namespace).spec.replicas == 1
    patch("smp", lab.namespace, {"spec": {"replicas": 0}})
    scale = lab.apps.read_namespaced_deployment_scale("smp", lab.namespace)
    assert scale.kind == "Scale"
    assert not scale.spec.replicas  # 0 is left out of the JSON, so it reads as None


def generation_bumps_on_spec_only(lab: Lab) -> None:
    patch = lab.apps.patch_namespaced_deployment
    first = lab.apps.read_namespaced_deployment("smp", lab.namespace).metadata.generation
    labels = {"metadata": {"labels": {"x": "y"}}}
    assert patch("smp", lab.namespace, labels).metadata.generation == first
    wish = {"spec": {"minReadySeconds": 5}}
    assert patch("smp", lab.namespace, wish).metadata.generation > first


def status_is_a_subresource(lab: Lab) -> None:
    patch = lab.apps.patch_namespaced_deployment
    patch("smp", lab.namespace, {"status": {"replicas": 42}})
    found = lab.apps.read_namespaced_deployment("smp", lab.namespace)
    assert found.status.replicas != 42


def secret_string_data(lab: Lab) -> None:
    body = {"metadata": {"name": "hf"}, "stringData": {"token": "t"}}
    found = lab.core.create_namespaced_secret(lab.namespace, body)
    assert found.data == {"token": "dA=="}
    assert found.type == "Opaque"


def quota_on_gpus_is_403(lab: Lab) -> None:
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}
    lab.core.create_namespaced_resource_quota(lab.namespace, quota)
    read = lab.core.read_namespaced_resource_quota
    wait_for(lambda: read("gpus", lab.namespace).status.hard, "the quota's status")
    pod = {"metadata": {"name": "over"}, "spec": lab.deployment()["spec"]["template"]["spec"]}
    said = refused(403, lab.core.create_namespaced_pod, lab.namespace, pod)
    assert "exceeded quota: gpus" in said["message"], said
    lab.core.delete_namespaced_resource_quota("gpus", lab.namespace)


def finalizer_holds_deletion(lab: Lab) -> None:
    lab.config_map("fin", metadata={"finalizers": ["lab.example/hold"]})
    lab.core.delete_namespaced_config_map("fin", lab.namespace)
    read = lab.core.read_namespaced_config_map
    assert read("fin", lab.namespace).metadata.deletion_timestamp
    free = {"metadata": {"finalizers": None}}
    lab.core.patch_namespaced_config_map("fin", lab.namespace, free, _content_type=MERGE)
    refused(404, read, "fin", lab.namespace)


def owner_reference_is_collected(lab: Lab) -> None:
    uid = lab.config_map("owner").metadata.uid
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    lab.config_map("owned", metadata={"ownerReferences": [owner]})
    lab.core.delete_namespaced_config_map("owner", lab.namespace)
    read = lab.core.read_namespaced_config_map
    wait_for(lambda: is_gone(read, "owned", lab.namespace), "garbage collection")


def namespace_delete_empties_it(lab: Lab) -> None:
    lab.core.delete_namespace(lab.namespace)
    wait_for(lambda: is_gone(lab.core.read_namespace, lab.namespace), "the namespace to go", 60)


def apply_of_an_unknown_field_is_500(lab: Lab) -> None:
    body = lab.deployment("unknown")
    body["spec"]["replcas"] = 3
    path = f"/apis/apps/v1/namespaces/{lab.namespace}/deployments/unknown"
    answer = lab.ask(
        "PATCH",
        path,
        body=body,
        headers={"Content-Type": APPLY},
        query_params=[("fieldManager", "lab")],
    )
    assert answer.status == 500
    assert "failed to create typed patch object" in json.loads(answer.data)["message"]


CHECKS = (
    stale_replace_is_409,
    delete_with_precondition_is_409,
    merge_patch_null_removes,
    json_patch,
    strategic_merge_keeps_containers,
    ssa_creates,
    ssa_same_again_changes_nothing,
    ssa_conflict_is_409,
    ssa_omitted_field_is_removed,
    ssa_keyed_list_merge,
    ssa_typed_client,
    apply_of_an_unknown_field_is_500,
    dry_run_all_stores_nothing,
    scale_subresource,
    generation_bumps_on_spec_only,
    status_is_a_subresource,
    secret_string_data,
    quota_on_gpus_is_403,
    finalizer_holds_deletion,
    owner_reference_is_collected,
)
LAST = (namespace_delete_empties_it,)
