"""Tenstorrent: claims only, no resource name; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="tenstorrent",
    name="Tenstorrent",
    resource_names=(),
)

VENDOR: Vendor = _KNOWN
