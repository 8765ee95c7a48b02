"""Hygon: resource name; no public list of labels was found; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="hygon",
    name="Hygon",
    resource_names=("hygon.com/dcu",),
)

VENDOR: Vendor = _KNOWN
