"""Reading nvidia-smi and the labels of gpu-feature-discovery."""

from pathlib import Path

import pytest

from inventory.vendors.base import FoundAccelerator, LabelFacts, VendorError
from inventory.vendors.nvidia import VENDOR

SAMPLES = Path(__file__).parent / "samples"


def test_reads_every_column_with_its_unit() -> None:
    output = (SAMPLES / "nvidia-smi-570-h100-nvl-made.csv").read_text()

    busy, idle = VENDOR.parse(output)

    assert busy == FoundAccelerator(
        slot=0,
        serial="GPU-6f1c0a52-0d5e-4a0e-9a53-3a8f3c1b7d01",
        name="NVIDIA H100 NVL",
        memory_total_mib=95830,
        memory_used_mib=71234,
        utilisation=0.87,
        power_watts=312.45,
        temperature_celsius=61.0,
        health="healthy",
    )
    assert (idle.utilisation, idle.health) == (0.0, "degraded")


def test_what_the_tool_did_not_say_is_none_and_a_lost_device_failed() -> None:
    output = (SAMPLES / "nvidia-smi-570-faults-made.csv").read_text()

    silent, lost = VENDOR.parse(output)

    assert (silent.memory_used_mib, silent.utilisation, silent.power_watts) == (None, None, None)
    assert (silent.temperature_celsius, silent.health) == (44.0, "healthy")
    assert (lost.memory_total_mib, lost.health) == (None, "failed")


def test_a_machine_without_devices_is_an_empty_list() -> None:
    assert VENDOR.parse("\n") == []


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("No devices were found", id="sentence"),
        pytest.param("0, GPU-1, NVIDIA L4, 23034", id="too-few-fields"),
        pytest.param("0, GPU-1, NVIDIA L4, lots, 1, 2, 3, 4, 0", id="no-number"),
        pytest.param("0, GPU-1, NVIDIA L4, 1, 1, 200, 3, 4, 0", id="over-100-percent"),
    ],
)
def test_other_output_is_refused(output: str) -> None:
    with pytest.raises(VendorError):
        VENDOR.parse(output)


def test_label_memory_is_mebibytes() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-NVL",
        "nvidia.com/gpu.memory": "95830",
        "nvidia.com/gpu.count": "2",
    }

    assert VENDOR.read_labels(labels) == LabelFacts("NVIDIA-H100-NVL", 95830, 2)
