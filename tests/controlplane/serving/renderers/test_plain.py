"""A group becomes a Deployment that a typed client takes as it is."""

from controlplane.serving.renderers.base import DeviceClaim
from controlplane.serving.renderers.plain import engine_manifests
from tests.controlplane.serving.renderers.groups import (
    engine_container,
    make_group,
    refuse_unknown_fields,
)


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
