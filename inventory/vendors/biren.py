"""Biren: resource name; no public list of labels was found; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="biren",
    name="Biren",
    resource_names=("birentech.com/gpu",),
)

VENDOR: Vendor = _KNOWN
