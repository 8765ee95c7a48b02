"""Reading rbln-stat."""

from pathlib import Path

import pytest

from inventory.vendors.base import LabelFacts, VendorError
from inventory.vendors.rebellions import VENDOR

SAMPLE = Path(__file__).parent / "samples" / "rbln-stat-2.0-atom-max-made.json"


def test_reads_logical_devices_in_the_order_of_their_slots() -> None:
    busy, idle = VENDOR.parse(SAMPLE.read_text())

    assert (busy.slot, busy.name, busy.memory_total_mib) == (0, "RBLN-CA25", 16096)
    assert (busy.utilisation, busy.power_watts, busy.temperature_celsius) == (0.415, 52.7, 35.0)
    assert busy.serial != idle.serial


def test_power_without_a_unit_is_unknown() -> None:
    _busy, idle = VENDOR.parse(SAMPLE.read_text())

    assert idle.power_watts is None


@pytest.mark.parametrize("output", ["", "{}", '{"devices": [3]}', '{"devices": [{"name": "x"}]}'])
def test_other_output_is_refused(output: str) -> None:
    with pytest.raises(VendorError):
        VENDOR.parse(output)


def test_labels() -> None:
    labels = {"rebellions.ai/npu.product": "RBLN-CA25", "rebellions.ai/npu.count": "4"}

    assert VENDOR.read_labels(labels) == LabelFacts("RBLN-CA25", None, 4)
