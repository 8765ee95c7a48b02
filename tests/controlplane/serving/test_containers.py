"""Settings of containers are read strictly, and devices and images follow vendors' facts."""

from typing import Any

import pytest

from controlplane.serving.containers import (
    engine_group,
    gateway_of,
    picker_images_of,
    picker_of,
    read_settings,
    several,
)
from controlplane.serving.engines import launcher
from controlplane.serving.engines.base import EngineCommand, EngineRequest
from controlplane.serving.renderers.base import (
    DeviceClaim,
    EngineGroup,
    ExtendedResource,
    RenderRefusedError,
)
from inventory.vendors import vendors

IMAGES = {vendor: f"registry.example/{vendor}:1" for vendor in ("nvidia", "amd", "intel-gaudi")}


def group(vendor: str = "nvidia", **settings: Any) -> EngineGroup:
    request = EngineRequest(
        name="gpu-1-0", role="decode", vendor=vendor, accelerator="x", slot=0, model="granite",
        model_name="ibm-granite/granite", max_model_len=8192, host="::", port=8000,
        side_channel_port=5600,
    )  # fmt: skip
    values = {"namespace": "llm", "images": IMAGES} | settings
    return engine_group(
        read_settings(values), request, launcher("vllm").command(request),
        pool="granite", engine="vllm", hostnames=("gpu-1",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("vendor", "resource"),
    [("nvidia", "nvidia.com/gpu"), ("amd", "amd.com/gpu"), ("intel-gaudi", "habana.ai/gaudi")],
)
def test_devices_are_counted_by_the_vendors_resource(vendor: str, resource: str) -> None:
    assert group(vendor).devices == ExtendedResource(name=resource, count=1)


@pytest.mark.parametrize(
    ("vendor", "device_class"),
    [("nvidia", "gpu.nvidia.com"), ("amd", "gpu.amd.com"), ("intel-gaudi", "gaudi.intel.com")],
)
def test_devices_are_claimed_by_the_vendors_class(vendor: str, device_class: str) -> None:
    assert group(vendor, claims=True).devices == DeviceClaim(device_class=device_class)


@pytest.mark.parametrize("vendor", sorted(vendors()))
def test_devices_of_every_vendor_can_be_asked_for(vendor: str) -> None:
    request = EngineRequest(
        name="e", role="both", vendor=vendor, accelerator="x", slot=0, model="m", model_name="m",
        max_model_len=1, tensor_parallel=2,
    )  # fmt: skip
    settings = read_settings({"namespace": "llm", "images": {vendor: "r.example/engine:1"}})

    found = engine_group(
        settings, request, EngineCommand(argv=("run",)), pool="p", engine="vllm"
    )  # fmt: skip

    assert found.devices is not None
    assert found.devices.count == 2


def test_a_vendor_that_gives_out_claims_only_is_claimed_unasked() -> None:
    settings = read_settings({"namespace": "llm", "images": {"tenstorrent": "r.example/engine:1"}})
    request = EngineRequest(
        name="e", role="both", vendor="tenstorrent", accelerator="x", slot=0, model="m",
        model_name="m", max_model_len=1,
    )  # fmt: skip

    found = engine_group(
        settings, request, EngineCommand(argv=("run",)), pool="p", engine="vllm"
    )  # fmt: skip

    assert found.devices == DeviceClaim(device_class="tenstorrent.com")


def test_a_class_that_was_set_is_claimed_under_its_conditions() -> None:
    condition = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('70Gi')) >= 0"
    devices = {"nvidia": {"device_class": "big.example", "conditions": [condition]}}

    found = group(devices=devices).devices

    assert found == DeviceClaim(device_class="big.example", conditions=(condition,))


def test_the_taint_with_the_resources_name_is_tolerated() -> None:
    assert [taint.key for taint in group().tolerations] == ["nvidia.com/gpu"]


def test_an_asked_for_toleration_takes_the_place_of_the_known_one() -> None:
    taint = {"key": "nvidia.com/gpu", "operator": "Equal", "value": "h100"}

    (found,) = group(devices={"nvidia": {"tolerations": [taint]}}).tolerations

    assert (found.operator, found.value) == ("Equal", "h100")


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        pytest.param({"images": {}}, "containers.images.nvidia", id="no-image"),
        pytest.param(
            {"images": {"nvidia": "r:5000/vllm"}}, "containers.images.nvidia", id="no-tag"
        ),
        pytest.param({"namespce": "x"}, "containers", id="unknown-field"),
        pytest.param({"namespace": "Not A Name"}, "containers.namespace", id="namespace"),
        pytest.param({"namespace": "name\n"}, "containers.namespace", id="newline"),
        pytest.param({"shm_mib": 0}, "containers.shm_mib", id="no-memory"),
        pytest.param({"labels": {"consort.dev/pool": "x"}}, "containers.labels", id="our-label"),
        pytest.param({"labels": {"a b": "x"}}, "containers.labels", id="label-key"),
        pytest.param(
            {"files": {"kind": "s3", "source": "s3://x"}}, "containers.files.kind", id="s3"
        ),
        pytest.param(
            {"files": {"kind": "node-path", "source": "data"}}, "containers.files.source",
            id="relative",
        ),
        pytest.param({"env": {"A B": "x"}}, "containers.env", id="variable"),
        pytest.param({"patches": {"both": "x" * 300_000}}, "containers", id="too-large"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_with_its_field(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(RenderRefusedError) as refusal:
        group(**settings)

    assert refusal.value.field.startswith(field)
    assert str(refusal.value)


def test_a_vendor_without_a_resource_or_class_asks_for_one() -> None:
    with pytest.raises(RenderRefusedError, match=r"containers\.devices\.rebellions\.device_class"):
        group("rebellions", claims=True, images={"rebellions": "r.example/x:1"})


def test_gateway_and_picker_are_none_until_they_are_named() -> None:
    bare = read_settings({"namespace": "llm"})
    named = read_settings(
        {"namespace": "llm", "gateway": {"name": "g"}, "picker": {"name": "p", "port": 9003}}
    )

    assert (gateway_of(bare), picker_of(bare)) == (None, None)
    assert gateway_of(named).name == "g"  # type: ignore[union-attr]
    assert picker_of(named).port == 9003  # type: ignore[union-attr]


def test_an_export_may_have_what_one_engine_at_a_time_cannot() -> None:
    values = {"namespace": "llm", "images": IMAGES, "stable_names": True}

    found = several(group(), read_settings(values), replicas=3)

    assert (found.replicas, found.has_stable_names) == (3, True)


def test_a_number_that_an_autoscaler_owns_is_left_out() -> None:
    settings = read_settings({"namespace": "llm", "autoscaled": True})

    assert several(group(), settings, replicas=3).replicas is None


def test_an_engine_over_nodes_has_a_command_for_each_place() -> None:
    span = {
        "nodes": 2, "devices_per_node": 8, "leader_arguments": ["--node-rank", "0"],
        "worker_arguments": ["--headless"],
    }  # fmt: skip

    found = several(group(), read_settings({"namespace": "llm", "span": span}), replicas=1)

    assert (found.nodes, found.devices) == (2, ExtendedResource(name="nvidia.com/gpu", count=8))
    assert found.argv[-1] == "0"
    assert found.worker_argv[-1] == "--headless"


def test_images_of_llm_d_are_empty_until_they_are_named() -> None:
    assert picker_images_of(read_settings({"namespace": "llm"})).picker == ""
