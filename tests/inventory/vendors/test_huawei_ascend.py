"""Ascend: labels are read, the tool's table is refused with what to do."""

import pytest

from inventory.vendors.base import LabelFacts, VendorError
from inventory.vendors.huawei_ascend import VENDOR


def test_the_refusal_says_what_to_do() -> None:
    with pytest.raises(VendorError, match=r"npu-smi is not supported yet.*import file"):
        VENDOR.parse("| NPU   Name | Health |")


def test_label_of_the_chip() -> None:
    labels = {"node.kubernetes.io/npu.chip.name": "910B4"}

    assert VENDOR.read_labels(labels) == LabelFacts("910B4", None, None)
