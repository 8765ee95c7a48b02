"""One file per vendor: names of its software, its labels, its tool and how to read its output.

Pure Python from the standard library: no Django, no processes, no network. The node agent runs the
probe command; the files here only say which it is and read its output. Nothing names a file: the
folder is scanned, so a vendor is added or removed with its file.
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from inventory.vendors.base import Vendor


@cache
def vendors() -> Mapping[str, Vendor]:
    """Vendor by slug, sorted by slug."""
    names = sorted(
        module.name for module in pkgutil.iter_modules(__path__) if module.name != "base"
    )
    found: list[Vendor] = [import_module(f"{__name__}.{name}").VENDOR for name in names]
    return {vendor.slug: vendor for vendor in found}
