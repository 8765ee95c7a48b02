"""KServe: one object for the pool; what it makes itself is left to it."""

from dataclasses import replace
from typing import Any

import pytest

from controlplane.serving.renderers import renderer
from controlplane.serving.renderers.base import (
    ArtefactVolume,
    GatewayReference,
    Manifest,
    PickerReference,
    PoolLayout,
    RenderRefusedError,
)
from routing.core.document import Policy
from tests.controlplane.serving.renderers.golden_cases import layout_of, make_engines

TOGETHER = layout_of("nvidia", "vllm", ("both",))
APART = layout_of("nvidia", "vllm", ("prefill", "decode"))


def spec_of(layout: PoolLayout) -> Manifest:
    (service,) = renderer("kserve").render(layout)
    found: Manifest = service["spec"]
    return found


def each(layout: PoolLayout, **changes: Any) -> PoolLayout:
    return replace(layout, groups=tuple(replace(one, **changes) for one in layout.groups))


def test_the_engines_options_go_where_kserve_takes_them() -> None:
    argv = ("vllm", "serve", "m", "--host", "x", "--port", "8000", "--revision", "r",
            "--kv-transfer-config", '{"a": "b c"}', "--enforce-eager")  # fmt: skip

    spec = spec_of(each(TOGETHER, argv=argv))

    (container,) = spec["template"]["containers"]
    assert container["env"][-1] == {
        "name": "VLLM_ADDITIONAL_ARGS",
        "value": """--kv-transfer-config '{"a": "b c"}' --enforce-eager""",
    }


def test_command_ports_and_probes_are_kserves() -> None:
    (container,) = spec_of(TOGETHER)["template"]["containers"]

    assert container["name"] == "main"
    assert not {"command", "ports", "readinessProbe", "startupProbe"} & set(container)


def test_prefill_is_a_part_of_the_same_object() -> None:
    spec = spec_of(APART)

    assert spec["prefill"]["labels"]["consort.dev/workload"] == "granite-prefill"
    assert spec["labels"]["consort.dev/workload"] == "granite-decode"


@pytest.mark.parametrize(
    ("artefact", "uri"),
    [
        (None, "hf://ibm-granite/granite-4.1-8b:main"),
        (ArtefactVolume(kind="pvc", source="weights", sub_path="g/1"), "pvc://weights/g/1"),
        (ArtefactVolume(kind="oci", source="r.example/m@sha256:0"), "oci://r.example/m@sha256:0"),
    ],
)
def test_the_models_place_is_a_uri(artefact: ArtefactVolume | None, uri: str) -> None:
    spec = spec_of(each(TOGETHER, artefact=artefact))

    assert spec["model"]["uri"] == uri
    assert [volume["name"] for volume in spec["template"]["volumes"]] == ["shm"]


def test_a_number_that_an_autoscaler_owns_is_left_out() -> None:
    assert "replicas" not in spec_of(each(TOGETHER, replicas=None))


def test_a_named_gateway_is_referred_to() -> None:
    spec = spec_of(replace(TOGETHER, gateway=GatewayReference(name="g")))

    assert spec["router"]["gateway"] == {"refs": [{"name": "g", "namespace": "llm"}]}


@pytest.mark.parametrize(
    ("layout", "field"),
    [
        pytest.param(layout_of("nvidia", "sglang", ("both",)), "engine", id="engine"),
        pytest.param(each(TOGETHER, nodes=2), "nodes", id="nodes"),
        pytest.param(each(TOGETHER, patch={"spec": {}}), "patch", id="patch"),
        pytest.param(each(TOGETHER, has_stable_names=True), "has_stable_names", id="names"),
        pytest.param(
            each(TOGETHER, artefact=ArtefactVolume(kind="node-path", source="/srv/m")),
            "artefact",
            id="folder",
        ),
        pytest.param(
            replace(TOGETHER, picker=PickerReference(name="p")), "picker", id="picker"
        ),
        pytest.param(
            replace(TOGETHER, gateway=GatewayReference(name="g", hostnames=("a.example",))),
            "gateway.hostnames",
            id="hostnames",
        ),
        pytest.param(replace(TOGETHER, policy=Policy(name="consort")), "policy", id="policy"),
        pytest.param(
            replace(TOGETHER, groups=(*TOGETHER.groups, make_engines("amd", "vllm", "both"))),
            "groups",
            id="two-vendors",
        ),
        pytest.param(layout_of("nvidia", "vllm", ("prefill",)), "role", id="no-decode"),
    ],
)  # fmt: skip
def test_what_it_cannot_express_is_refused_with_the_field(layout: PoolLayout, field: str) -> None:
    with pytest.raises(RenderRefusedError) as refusal:
        renderer("kserve").render(layout)

    assert refusal.value.field == field
    assert len(str(refusal.value)) > 20
