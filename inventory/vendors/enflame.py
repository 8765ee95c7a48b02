"""Enflame: labels of gcu-feature-discovery; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="enflame",
    name="Enflame",
    resource_names=("enflame.com/gcu",),
    model_label="enflame.com/gcu.model",
    memory_label="enflame.com/gcu.memory",
    memory_unit="mb",
    count_label="enflame.com/gcu.count",
)

VENDOR: Vendor = _KNOWN
