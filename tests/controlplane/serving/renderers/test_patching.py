"""The operator's patch: it adds what is not modelled and cannot take over what Consort decides."""

from typing import Any

import pytest

from controlplane.serving.renderers._patching import patched
from controlplane.serving.renderers.base import Manifest, RenderRefusedError
from controlplane.serving.renderers.plain import bare_workload
from tests.controlplane.serving.renderers.groups import make_group, refuse_unknown_fields


def pod_patch(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": fields}}}


def put(patch: Any) -> Manifest:
    after = patched(bare_workload(make_group()), patch)
    refuse_unknown_fields(after)
    found: Manifest = after["spec"]["template"]["spec"]
    return found


def test_a_container_is_merged_by_its_name() -> None:
    change = {"name": "engine", "env": [{"name": "NCCL_DEBUG", "value": "INFO"}]}

    (container,) = put(pod_patch(containers=[change]))["containers"]

    names = [row["name"] for row in container["env"]]
    assert names == ["POD_IP", "POD_NAME", "NODE_NAME", "NCCL_DEBUG"]


def test_another_container_is_appended() -> None:
    sidecar = {"name": "log", "image": "registry.example/log:1"}

    containers = put(pod_patch(containers=[sidecar]))["containers"]

    assert [one["name"] for one in containers] == ["engine", "log"]


def test_null_removes_a_field_and_a_directive_removes_an_entry() -> None:
    found = put(
        pod_patch(enableServiceLinks=None, volumes=[{"name": "shm", "$patch": "delete"}])
    )  # fmt: skip

    assert "enableServiceLinks" not in found
    assert found["volumes"] == []


def test_a_directive_replaces_a_mapping() -> None:
    context = {"$patch": "replace", "runAsUser": 1000}

    assert put(pod_patch(securityContext=context))["securityContext"] == {"runAsUser": 1000}


def test_a_list_without_a_merge_key_is_replaced() -> None:
    taints = [{"key": "a", "operator": "Exists"}]

    assert put(pod_patch(tolerations=taints))["tolerations"] == taints


def test_a_json_patch_works_as_well() -> None:
    operation = {"op": "add", "path": "/spec/template/spec/hostNetwork", "value": True}

    assert put([operation])["hostNetwork"] is True


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        pytest.param({"metadata": {"name": "x"}}, "/metadata/name", id="name"),
        pytest.param({"metadata": {"namespace": "x"}}, "/metadata/namespace", id="namespace"),
        pytest.param({"kind": "Job"}, "/kind", id="kind"),
        pytest.param(
            {"metadata": {"labels": {"consort.dev/pool": "x"}}}, "consort.dev/pool", id="label"
        ),
        pytest.param(
            {"metadata": {"labels": {"llm-d.ai/other": "x"}}}, "llm-d.ai/other", id="more-labels"
        ),
        pytest.param({"metadata": {"labels": None}}, "/metadata/labels/", id="no-labels"),
        pytest.param({"spec": {"selector": {"x": {}}}}, "selector", id="selector"),
        pytest.param({"spec": {"replicas": 5}}, "/spec/replicas", id="replicas"),
        pytest.param(
            pod_patch(nodeSelector={"kubernetes.io/hostname": "x"}), "hostname", id="node"
        ),
        pytest.param(
            pod_patch(containers=[{"name": "engine", "$patch": "delete"}]), "containers",
            id="engine",
        ),
        pytest.param(
            [{"op": "replace", "path": "/spec/template/spec/containers/0/name", "value": "x"}],
            "containers/0/name", id="container-name",
        ),
        pytest.param([{"op": "remove", "path": "/spec/selector"}], "/spec/selector", id="json"),
    ],
)  # fmt: skip
def test_what_consort_decides_is_refused_with_its_path(patch: Any, path: str) -> None:
    with pytest.raises(RenderRefusedError, match="which Consort decides") as refusal:
        put(patch)

    assert path in str(refusal.value)
    assert refusal.value.field == "patch"


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        pytest.param({"$setElementOrder/x": []}, "allowed are", id="directive"),
        pytest.param(pod_patch(containers=[{"image": "x"}]), "without 'name'", id="no-key"),
        pytest.param([{"op": "x"}], "JSON patch does not fit", id="operation"),
        pytest.param({"$patch": "delete"}, "leaves no object", id="nothing"),
    ],
)
def test_a_patch_that_cannot_be_put_on_is_refused(patch: Any, sentence: str) -> None:
    with pytest.raises(RenderRefusedError, match=sentence):
        patched(bare_workload(make_group()), patch)


def test_a_patch_nested_too_deep_is_refused() -> None:
    patch: Any = {}
    for _ in range(60):
        patch = {"a": patch}

    with pytest.raises(RenderRefusedError, match="deeper than 40"):
        patched(bare_workload(make_group()), patch)


def test_the_rendered_object_stays_as_it_is() -> None:
    before, untouched = bare_workload(make_group()), bare_workload(make_group())

    patched(before, pod_patch(containers=[{"name": "engine", "env": [{"name": "A", "value": ""}]}]))

    assert before == untouched
