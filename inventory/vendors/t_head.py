"""T-Head: resource name; no public list of labels was found; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="t-head",
    name="T-Head",
    resource_names=("alibabacloud.com/ppu",),
)

VENDOR: Vendor = _KNOWN
