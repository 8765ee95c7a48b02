"""llm-d: its picker runs the pool's policy, and a sidecar stands before what decodes."""

from dataclasses import replace

import pytest
import yaml

from controlplane.serving.renderers import renderer
from controlplane.serving.renderers.base import (
    PickerReference,
    PoolLayout,
    RenderRefusedError,
)
from controlplane.serving.renderers.llmd import with_options
from routing.core.document import Policy
from routing.llmd.conversion import convert
from tests.controlplane.serving.renderers.golden_cases import IMAGES, layout_of
from tests.controlplane.serving.renderers.groups import Manifest

APART = layout_of("nvidia", "vllm", ("prefill", "decode"))
TOGETHER = layout_of("nvidia", "vllm", ("both",))


def rendered(layout: PoolLayout, kind: str) -> list[Manifest]:
    return [one for one in renderer("llm-d").render(layout) if one["kind"] == kind]


def test_a_sidecar_takes_the_pools_port_of_engines_that_decode() -> None:
    prefill, decode = rendered(APART, "Deployment")[1:]

    pod = decode["spec"]["template"]["spec"]
    (sidecar,) = pod["initContainers"]
    assert sidecar["ports"][0]["containerPort"] == 8000
    assert sidecar["restartPolicy"] == "Always"
    command = pod["containers"][0]["command"]
    assert command[command.index("--port") + 1] == "8200"
    assert "initContainers" not in prefill["spec"]["template"]["spec"]


def test_the_engine_behind_a_sidecar_is_probed_on_its_own_port() -> None:
    decode = rendered(APART, "Deployment")[-1]

    container = decode["spec"]["template"]["spec"]["containers"][0]
    named = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert named[container["readinessProbe"]["httpGet"]["port"]] == 8200


def test_the_pickers_service_is_the_one_that_the_pool_names() -> None:
    (pool,) = rendered(APART, "InferencePool")
    picker = rendered(APART, "Service")[0]

    reference = pool["spec"]["endpointPickerRef"]
    assert reference["name"] == picker["metadata"]["name"]
    assert reference["port"]["number"] in {port["port"] for port in picker["spec"]["ports"]}


def test_the_picker_is_not_one_of_the_engines() -> None:
    (pool,) = rendered(TOGETHER, "InferencePool")
    picker = rendered(TOGETHER, "Deployment")[0]

    chosen = pool["spec"]["selector"]["matchLabels"].items()
    assert not chosen <= picker["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("layout", [APART, TOGETHER], ids=["apart", "together"])
def test_the_configuration_reads_back_as_profiles_of_the_roles(layout: PoolLayout) -> None:
    (config,) = rendered(layout, "ConfigMap")

    policy = convert(config["data"]["picker.yaml"]).policy
    wanted = {"prefill", "decode"} if layout is APART else {"default"}
    assert {profile.name for profile in policy.profiles} == wanted


def test_another_configuration_has_another_name_and_the_deployment_follows() -> None:
    other = replace(APART, policy=replace_weight(2.0))

    names = [
        (
            rendered(layout, "ConfigMap")[0]["metadata"]["name"],
            rendered(layout, "Deployment")[0]["spec"]["template"]["spec"]["volumes"][0],
        )
        for layout in (APART, other)
    ]

    assert names[0][0] != names[1][0]
    assert all(volume["configMap"]["name"] == name for name, volume in names)


def replace_weight(weight: float) -> Policy:
    (config,) = rendered(TOGETHER, "ConfigMap")
    tree = yaml.safe_load(config["data"]["picker.yaml"])
    tree["schedulingProfiles"][0]["plugins"][0]["weight"] = weight + 5
    return convert(yaml.safe_dump(tree)).policy


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"policy": Policy(name="consort")}, "policy", id="our-own-policy"),
        pytest.param({"picker": PickerReference(name="x")}, "picker", id="a-picker-of-ones-own"),
        pytest.param(
            {"picker_images": replace(IMAGES, picker="")}, "picker_images.picker", id="no-picker"
        ),
        pytest.param(
            {"picker_images": replace(IMAGES, sidecar="")}, "picker_images.sidecar", id="no-sidecar"
        ),
        pytest.param({"as_set": True}, "as_set", id="as-set"),
    ],
)
def test_what_it_cannot_express_is_refused_with_the_field(
    changes: dict[str, object], field: str
) -> None:
    with pytest.raises(RenderRefusedError) as refusal:
        renderer("llm-d").render(replace(APART, **changes))

    assert refusal.value.field == field


def test_a_command_without_a_port_cannot_be_moved() -> None:
    with pytest.raises(RenderRefusedError, match="no --port"):
        with_options(("vllm", "serve", "--host", "x"), {"--port": "1"})


def test_an_engine_without_a_connector_is_refused() -> None:
    groups = tuple(replace(group, engine="furiosa-llm") for group in APART.groups)

    with pytest.raises(RenderRefusedError, match="no connector for furiosa-llm"):
        renderer("llm-d").render(replace(APART, groups=groups))
