"""MetaX: resource name; no public list of labels was found; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="metax",
    name="MetaX",
    resource_names=("metax-tech.com/gpu",),
)

VENDOR: Vendor = _KNOWN
