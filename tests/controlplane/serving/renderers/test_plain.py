"""A group becomes a Deployment that a typed client takes as it is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.renderers import renderer
from controlplane.serving.renderers.base import DeviceClaim, RenderRefusedError
from controlplane.serving.renderers.plain import engine_manifests
from tests.controlplane.serving.renderers.groups import (
    engine_container,
    kinds,
    make_group,
    make_layout,
    make_pair,
    refuse_unknown_fields,
)

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def test_an_engine_is_a_deployment_of_one_pod_on_its_node() -> None:
    (deployment,) = engine_manifests(make_group())

    spec = deployment["spec"]
    assert deployment["metadata"]["name"] == "gpu-1-0"
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert spec["template"]["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "gpu-1"}
    assert engine_container(deployment)["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


def test_the_selector_does_not_change_with_the_role() -> None:
    (prefill,) = engine_manifests(make_group(role="prefill"))
    (decode,) = engine_manifests(make_group(role="decode"))

    assert prefill["spec"]["selector"] == decode["spec"]["selector"]
    assert prefill["spec"]["template"]["metadata"]["labels"]["llm-d.ai/role"] == "prefill"
    assert decode["spec"]["template"]["metadata"]["labels"]["llm-d.ai/role"] == "decode"


def test_the_selector_chooses_the_pods_of_the_template() -> None:
    (deployment,) = engine_manifests(make_group(name="Node_With.Dots-and-a-very-long-name" * 4))

    chosen = deployment["spec"]["selector"]["matchLabels"].items()
    assert chosen <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_a_number_that_an_autoscaler_owns_is_left_out() -> None:
    (deployment,) = engine_manifests(make_group(replicas=None))

    assert "replicas" not in deployment["spec"]


def test_claimed_devices_come_with_a_template_of_the_claim() -> None:
    claim = DeviceClaim(device_class="gpu.nvidia.com", count=2, conditions=("true",))

    template, deployment = engine_manifests(make_group(devices=claim))

    pod = deployment["spec"]["template"]["spec"]
    assert pod["resourceClaims"][0]["resourceClaimTemplateName"] == template["metadata"]["name"]
    assert engine_container(deployment)["resources"] == {"claims": [{"name": "accelerators"}]}
    for manifest in (template, deployment):
        refuse_unknown_fields(manifest)


def test_the_typed_client_takes_it() -> None:
    (deployment,) = engine_manifests(make_group())

    refuse_unknown_fields(deployment)


def test_a_pool_has_a_service_and_a_budget_for_each_role() -> None:
    manifests = renderer("plain").render(make_layout(*make_pair()))

    assert kinds(manifests) == [
        "Service", "PodDisruptionBudget", "PodDisruptionBudget", "Deployment", "Deployment",
    ]  # fmt: skip
    for manifest in manifests:
        refuse_unknown_fields(manifest)


def test_an_engine_over_several_nodes_is_a_leader_worker_set() -> None:
    group = make_group(nodes=2, worker_argv=("vllm", "serve", "--headless"), hostnames=())

    (manifest,) = engine_manifests(group)

    assert manifest["kind"] == "LeaderWorkerSet"


def test_a_group_with_stable_names_is_a_stateful_set_of_the_pools_service() -> None:
    layout = make_layout(make_group(has_stable_names=True, replicas=3))

    service, *_, workload = renderer("plain").render(layout)

    assert workload["kind"] == "StatefulSet"
    assert workload["spec"]["serviceName"] == service["metadata"]["name"]
    refuse_unknown_fields(workload)


def test_stable_names_over_several_nodes_are_refused() -> None:
    with pytest.raises(RenderRefusedError, match="LeaderWorkerSet"):
        engine_manifests(make_group(has_stable_names=True, nodes=2, worker_argv=("x",)))


def test_prefill_and_decode_can_be_one_object() -> None:
    manifests = renderer("plain").render(make_layout(*make_pair(), as_set=True))

    assert kinds(manifests)[-1] == "DisaggregatedSet"
    assert "Deployment" not in kinds(manifests)


def test_a_patch_is_put_on_the_workload() -> None:
    patch = {"spec": {"template": {"spec": {"priorityClassName": "high"}}}}

    (deployment,) = engine_manifests(make_group(patch=patch))

    assert deployment["spec"]["template"]["spec"]["priorityClassName"] == "high"


NAMES = st.text(min_size=1, max_size=120)


@given(
    name=NAMES,
    pool=NAMES,
    model=NAMES,
    hostname=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True),
    role=st.sampled_from(["prefill", "decode", "both"]),
    claim=st.booleans(),
    stable=st.booleans(),
)
def test_any_names_give_objects_that_an_api_server_takes(
    name: str, pool: str, model: str, hostname: str, role: str, claim: bool, stable: bool
) -> None:
    devices = {"devices": DeviceClaim(device_class="gpu.nvidia.com")} if claim else {}
    group = make_group(
        name=name, pool=pool, model=model, role=role, hostnames=(hostname,),
        has_stable_names=stable, **devices,
    )  # fmt: skip

    manifests = renderer("plain").render(make_layout(group, pool=pool))

    for manifest in manifests:
        refuse_unknown_fields(manifest)
        assert DNS_LABEL.fullmatch(manifest["metadata"]["name"])
    workload = manifests[-1]["spec"]
    assert (
        workload["selector"]["matchLabels"].items()
        <= workload["template"]["metadata"]["labels"].items()
    )
    assert (
        manifests[0]["spec"]["selector"].items()
        <= workload["template"]["metadata"]["labels"].items()
    )
