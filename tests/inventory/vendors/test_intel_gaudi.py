"""Reading hl-smi."""

from pathlib import Path

import pytest

from inventory.vendors.base import LabelFacts, VendorError
from inventory.vendors.intel_gaudi import VENDOR

SAMPLE = Path(__file__).parent / "samples" / "hl-smi-1.20-gaudi3-made.csv"


def test_reads_values_with_units() -> None:
    busy, idle = VENDOR.parse(SAMPLE.read_text())

    assert (busy.serial, busy.name) == ("01P4-HL3325A0-18-U4V193-22-07-00", "HL-325L")
    assert (busy.memory_total_mib, busy.memory_used_mib) == (131072, 98304)
    assert (busy.utilisation, busy.power_watts, busy.temperature_celsius) == (0.64, 521.0, 57.0)
    assert (idle.utilisation, idle.temperature_celsius) == (0.0, None)


@pytest.mark.parametrize("output", ["no AIPs", "0, u, HL-325L, 1 MiB, 1 MiB, 5 %, 3 kW, 2 C"])
def test_other_output_and_other_units_are_refused(output: str) -> None:
    with pytest.raises(VendorError):
        VENDOR.parse(output)


def test_no_label_is_known() -> None:
    assert VENDOR.read_labels({"habana.ai/x": "1"}) == LabelFacts(None, None, None)
