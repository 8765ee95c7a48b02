"""Reading rocm-smi and the labels of AMD's node labeller."""

from pathlib import Path

import pytest

from inventory.vendors.amd import VENDOR
from inventory.vendors.base import LabelFacts, VendorError

SAMPLE = Path(__file__).parent / "samples" / "rocm-smi-6.3-mi325x-made.json"


def test_reads_bytes_as_mebibytes_and_sorts_by_slot() -> None:
    busy, idle = VENDOR.parse(SAMPLE.read_text())

    assert (busy.slot, busy.name, busy.memory_total_mib) == (0, "AMD Instinct MI325X", 262128)
    assert (busy.utilisation, busy.power_watts, busy.temperature_celsius) == (0.93, 812.0, 71.0)
    assert (idle.slot, idle.utilisation, idle.power_watts) == (1, 0.0, None)


def test_the_unique_id_stands_in_for_a_missing_serial() -> None:
    first, second = VENDOR.parse(SAMPLE.read_text())

    assert (first.serial, second.serial) == ("0x8f2c", "692421000102")


@pytest.mark.parametrize("output", ["", "[]", "no json", '{"card0": 3}'])
def test_other_output_is_refused(output: str) -> None:
    with pytest.raises(VendorError):
        VENDOR.parse(output)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(
            {"amd.com/gpu.product-name": "Instinct_MI325X", "amd.com/gpu.vram": "256G"},
            LabelFacts("Instinct_MI325X", 262144, None),
            id="current-prefix",
        ),
        pytest.param(
            {"beta.amd.com/gpu.product-name": "Instinct_MI210", "beta.amd.com/gpu.vram": "64G"},
            LabelFacts("Instinct_MI210", 65536, None),
            id="older-prefix",
        ),
        pytest.param(
            {"beta.amd.com/gpu.vram.64G": "1"}, LabelFacts(None, 65536, None), id="value-in-key"
        ),
        pytest.param({"amd.com/gpu.vram": "much"}, LabelFacts(None, None, None), id="unreadable"),
    ],
)
def test_labels(labels: dict[str, str], expected: LabelFacts) -> None:
    assert VENDOR.read_labels(labels) == expected
