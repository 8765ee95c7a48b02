"""Custom kinds: Gateway API, Inference Extension, LeaderWorkerSet. They must be installed."""

from kubernetes import watch

from tests.kubernetes.conformance.base import Lab, Object, refused

POOLS = ("inference.networking.k8s.io", "v1")
MERGE = "application/merge-patch+json"


def cr_inferencepool_apply(lab: Lab) -> None:
    found = lab.apply(lab.pool())
    picker = found.spec.endpointPickerRef
    assert found.metadata.generation == 1
    assert (picker.kind, picker.failureMode) == ("Service", "FailClose")


def cr_schema_violation_is_422(lab: Lab) -> None:
    refused(422, lab.apply, lab.pool("badport", targetPorts=[{"number": 99999}]))


def cr_rule_violation_is_422(lab: Lab) -> None:
    # A reference to a Service must name its port.
    refused(422, lab.apply, lab.pool("cel", endpointPickerRef={"name": "epp"}))


def cr_unknown_field_strict_is_400(lab: Lab) -> None:
    body = lab.pool("unknown", nope=1)
    create = lab.custom.create_namespaced_custom_object
    refused(400, create, *POOLS, lab.namespace, "inferencepools", body, field_validation="Strict")


def cr_unknown_field_pruned(lab: Lab) -> None:
    create = lab.custom.create_namespaced_custom_object
    found = create(*POOLS, lab.namespace, "inferencepools", lab.pool("prune", nope=1))
    assert "nope" not in found["spec"]


def cr_status_subresource(lab: Lab) -> None:
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
    status = {"parents": [{"parentRef": parent, "conditions": [condition]}]}
    found = lab.custom.patch_namespaced_custom_object_status(
        *POOLS,
        lab.namespace,
        "inferencepools",
        "llama",
        {"status": status},
        _content_type=MERGE,
    )
    assert found["status"]["parents"][0]["conditions"][0]["type"] == "Accepted"
    assert found["metadata"]["generation"] == 1


def cr_gateway_and_route(lab: Lab) -> None:
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    lab.apply(_object(lab, "Gateway", "gw", {"gatewayClassName": "lab", "listeners": [listener]}))
    backend = {"group": POOLS[0], "kind": "InferencePool", "name": "llama"}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "backendRefs": [backend],
        "timeouts": {"request": "300s"},
    }
    spec = {"parentRefs": [{"name": "gw"}], "rules": [rule]}
    found = lab.apply(_object(lab, "HTTPRoute", "llama", spec))
    assert found.spec.rules[0].backendRefs[0].weight == 1
    get = lab.custom.get_namespaced_custom_object
    old = get("gateway.networking.k8s.io", "v1beta1", lab.namespace, "httproutes", "llama")
    assert old["apiVersion"] == "gateway.networking.k8s.io/v1beta1"


def _object(lab: Lab, kind: str, name: str, spec: Object) -> Object:
    meta = {"name": name, "namespace": lab.namespace}
    version = "gateway.networking.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


def cr_inferenceobjective(lab: Lab) -> None:
    found = lab.apply(
        {
            "apiVersion": "inference.networking.x-k8s.io/v1alpha2",
            "kind": "InferenceObjective",
            "metadata": {"name": "chat", "namespace": lab.namespace},
            "spec": {"priority": 10, "poolRef": {"name": "llama", "group": POOLS[0]}},
        }
    )
    assert found.spec.priority == 10


def cr_leaderworkerset(lab: Lab) -> None:
    resources = {"limits": {"nvidia.com/gpu": "8"}}
    container = {"name": "s", "image": "vllm/vllm-openai:v0.11.0", "resources": resources}
    template = {"spec": {"containers": [container]}}
    group = {"size": 2, "leaderTemplate": template, "workerTemplate": template}
    found = lab.apply(
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "deepseek", "namespace": lab.namespace},
            "spec": {"replicas": 1, "leaderWorkerTemplate": group},
        }
    )
    assert found.spec.leaderWorkerTemplate.restartPolicy == "RecreateGroupOnPodRestart"


def cr_watch(lab: Lab) -> None:
    found = lab.custom.list_namespaced_custom_object
    before = found(*POOLS, lab.namespace, "inferencepools")["metadata"]["resourceVersion"]
    lab.apply(lab.pool("watched"))
    delete = lab.custom.delete_namespaced_custom_object
    delete(*POOLS, lab.namespace, "inferencepools", "watched")
    stream, types = watch.Watch(), []
    for event in stream.stream(
        found,
        *POOLS,
        lab.namespace,
        "inferencepools",
        field_selector="metadata.name=watched",
        resource_version=before,
        timeout_seconds=6,
    ):
        types.append(event["type"])
        if len(types) == 2:
            stream.stop()
    assert types == ["ADDED", "DELETED"], types


CHECKS = (
    cr_inferencepool_apply,
    cr_schema_violation_is_422,
    cr_rule_violation_is_422,
    cr_unknown_field_strict_is_400,
    cr_unknown_field_pruned,
    cr_status_subresource,
    cr_gateway_and_route,
    cr_inferenceobjective,
    cr_leaderworkerset,
    cr_watch,
)
