"""Vastai: resource name; no public list of labels was found; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="vastai",
    name="Vastai",
    resource_names=("vastaitech.com/va",),
)

VENDOR: Vendor = _KNOWN
