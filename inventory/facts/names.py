"""Whose a name is: resources, drivers and labels of a cluster, models as tools print them.

Vendors' tools, labellers and drivers print one model in several ways ("NVIDIA H100 NVL",
"NVIDIA-H100-NVL", "Instinct_MI210"), so names are compared by their letters and digits only.
"""

import re
from collections.abc import Mapping
from functools import cache

from inventory.facts import loading
from inventory.vendors import vendors

_NOT_COMPARED = re.compile(r"[^a-z0-9]+")


def model_named(vendor: str, name: str) -> str | None:
    """Slug of the model that a tool, label or driver of the vendor calls so; None if unknown."""
    plain = _plain(name)
    found = _models().get((vendor, plain))
    if found is None and plain and vendor in vendors():
        # AMD's labeller leaves the maker's name out of some products: "Instinct_MI210".
        found = _models().get((vendor, _plain(vendors()[vendor].name) + plain))
    return found


def vendor_of_driver(driver: str) -> str | None:
    """Slug of the vendor whose driver publishes ResourceSlices under this name."""
    return _drivers().get(driver)


def vendor_of_resource(resource: str) -> str | None:
    """Slug of the vendor of an extended resource; by its domain where the name is not known.

    A domain that two vendors share (none does at present) counts for neither.
    """
    exact = _resources().get(resource)
    return exact if exact is not None else _domains().get(resource.partition("/")[0])


def is_whole_device(resource: str) -> bool:
    """True if one of the resource is one device, and no slice or replica of one.

    `.shared` is what NVIDIA's device plugin appends to the name of replicas.
    """
    return resource in _resources() and not resource.endswith(".shared")


@cache
def _models() -> Mapping[tuple[str, str], str]:
    return {
        (facts.vendor, _plain(name)): facts.slug
        for facts in loading.accelerators()
        for name in facts.reported_names
    }


@cache
def _drivers() -> Mapping[str, str]:
    known = loading.vendors()
    return {
        driver: slug
        for slug in vendors()
        if slug in known and (driver := known[slug].dra_driver) is not None
    }


@cache
def _resources() -> Mapping[str, str]:
    return {name: slug for slug, vendor in vendors().items() for name in vendor.resource_names}


@cache
def _domains() -> Mapping[str, str]:
    owners: dict[str, set[str]] = {}
    for name, slug in _resources().items():
        owners.setdefault(name.partition("/")[0], set()).add(slug)
    return {domain: slugs.pop() for domain, slugs in owners.items() if len(slugs) == 1}


def _plain(name: str) -> str:
    return _NOT_COMPARED.sub("", name.lower())
