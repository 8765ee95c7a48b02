"""Reading furiosa-smi."""

from pathlib import Path

import pytest

from inventory.vendors.base import LabelFacts, VendorError
from inventory.vendors.furiosa import VENDOR

SAMPLE = Path(__file__).parent / "samples" / "furiosa-smi-2026.1-rngd-made.json"


def test_reads_serial_power_and_temperature() -> None:
    first, second = VENDOR.parse(SAMPLE.read_text())

    assert (first.slot, first.serial, first.name) == (0, "RNG26040100181Q", "rngd")
    assert (first.power_watts, first.temperature_celsius) == (162.0, 44.02)
    assert (second.slot, second.memory_total_mib, second.utilisation) == (1, None, None)


@pytest.mark.parametrize("output", ["", "{}", "[3]", '[{"dev_name": "card7"}]'])
def test_other_output_is_refused(output: str) -> None:
    with pytest.raises(VendorError):
        VENDOR.parse(output)


def test_labels() -> None:
    labels = {"furiosa.ai/npu.product": "rngd", "furiosa.ai/npu.count": "4"}

    assert VENDOR.read_labels(labels) == LabelFacts("rngd", None, 4)
