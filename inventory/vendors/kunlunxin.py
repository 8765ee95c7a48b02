"""Kunlunxin: resource name; no public list of labels was found; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="kunlunxin",
    name="Kunlunxin",
    resource_names=("kunlunxin.com/xpu",),
)

VENDOR: Vendor = _KNOWN
