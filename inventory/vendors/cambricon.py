"""Cambricon: labels of the device plugin, whose keys have no prefix; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="cambricon",
    name="Cambricon",
    resource_names=("cambricon.com/mlu", "cambricon.com/mlu370"),
    model_label="Model",
)

VENDOR: Vendor = _KNOWN
