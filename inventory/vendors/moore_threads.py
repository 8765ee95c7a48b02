"""Moore Threads: resource name; no public list of labels was found; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="moore-threads",
    name="Moore Threads",
    resource_names=("mthreads.com/gpu",),
)

VENDOR: Vendor = _KNOWN
