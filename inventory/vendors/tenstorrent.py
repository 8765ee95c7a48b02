"""Tenstorrent: claims only, no resource name; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

VENDOR: Vendor = KnownByName(
    slug="tenstorrent",
    name="Tenstorrent",
    resource_names=(),
)
