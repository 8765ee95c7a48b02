"""Huawei Ascend: labels of the device plugin; the table of `npu-smi info` is not read yet.

`npu-smi info` prints a table for people whose columns differ between releases and which holds no
serial, and no recorded sample of a known release is at hand. A wrong reading would be worse than
none, so `parse` refuses and says what to do.
"""

from collections.abc import Mapping

from inventory.vendors.base import FoundAccelerator, LabelFacts, Vendor, VendorError, label_facts


class HuaweiAscend:
    """Knows names and labels; does not read the tool's output."""

    slug = "huawei-ascend"
    name = "Huawei Ascend"
    resource_names = ("huawei.com/Ascend910", "huawei.com/npu")
    probe_command = ("npu-smi", "info")

    def parse(self, output: str) -> list[FoundAccelerator]:
        """Always raises VendorError: the table differs between releases and holds no serials."""
        raise VendorError(
            "Reading the output of npu-smi is not supported yet: its table differs between "
            "releases and holds no serial numbers. Enter the node's accelerators in an import file."
        )

    def read_labels(self, labels: Mapping[str, str]) -> LabelFacts:
        """Label of the Ascend device plugin: the chip's name."""
        return label_facts(labels, model="node.kubernetes.io/npu.chip.name")


VENDOR: Vendor = HuaweiAscend()
