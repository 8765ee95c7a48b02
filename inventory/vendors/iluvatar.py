"""Iluvatar CoreX: resource name; no public list of labels was found; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="iluvatar",
    name="Iluvatar CoreX",
    resource_names=("iluvatar.com/gpu",),
)

VENDOR: Vendor = _KNOWN
