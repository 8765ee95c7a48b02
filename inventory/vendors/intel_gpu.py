"""Intel GPU: labels of Intel's node-feature rules; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="intel-gpu",
    name="Intel GPU",
    resource_names=("gpu.intel.com/xe", "gpu.intel.com/i915"),
    model_label="gpu.intel.com/product",
    count_label="gpu.intel.com/device.count",
)

VENDOR: Vendor = _KNOWN
