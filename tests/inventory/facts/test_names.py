"""Whose a name is: models, drivers, resources."""

import pytest

from inventory.facts import names


@pytest.mark.parametrize(
    ("vendor", "name", "slug"),
    [
        pytest.param("nvidia", "NVIDIA H100 80GB HBM3", "nvidia-h100-sxm", id="tool"),
        pytest.param("nvidia", "NVIDIA-H100-80GB-HBM3", "nvidia-h100-sxm", id="label"),
        pytest.param("nvidia", "A100-SXM4-80GB", "nvidia-a100-sxm", id="label-without-maker"),
        pytest.param("amd", "AMD_Instinct_MI300X_OAM", "amd-mi300x", id="amd-label"),
        pytest.param("amd", "Instinct_MI325X", "amd-mi325x", id="amd-label-without-maker"),
        pytest.param("intel-gaudi", "Gaudi3", "intel-gaudi3", id="driver"),
        pytest.param("amd", "NVIDIA H100 NVL", None, id="other-vendors-model"),
        pytest.param("nvidia", "", None, id="empty"),
        pytest.param("acme", "H100", None, id="vendor-without-file"),
    ],
)
def test_a_model_is_known_by_the_names_that_tools_and_labels_print(
    vendor: str, name: str, slug: str | None
) -> None:
    assert names.model_named(vendor, name) == slug


def test_a_driver_belongs_to_its_vendor_and_an_unknown_one_to_nobody() -> None:
    assert names.vendor_of_driver("gpu.nvidia.com") == "nvidia"
    assert names.vendor_of_driver("gaudi.intel.com") == "intel-gaudi"
    assert names.vendor_of_driver("dra.example") is None


@pytest.mark.parametrize(
    ("resource", "vendor", "is_whole"),
    [
        ("nvidia.com/gpu", "nvidia", True),
        ("nvidia.com/gpu.shared", "nvidia", False),
        ("nvidia.com/mig-1g.5gb", "nvidia", False),
        ("amd.com/cpx_nps4", "amd", False),
        ("habana.ai/gaudi", "intel-gaudi", True),
        ("rdma/hca", None, False),
    ],
)
def test_a_resource_is_a_whole_device_only_by_its_exact_name(
    resource: str, vendor: str | None, *, is_whole: bool
) -> None:
    assert names.vendor_of_resource(resource) == vendor
    assert names.is_whole_device(resource) is is_whole
