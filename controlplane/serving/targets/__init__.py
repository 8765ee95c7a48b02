"""Places where engines run: one file per place, found by a scan of this folder."""

import importlib
import pkgutil
from functools import cache

from controlplane.serving.targets.base import Target


@cache
def targets() -> dict[str, Target]:
    """Every target by its name."""
    found: dict[str, Target] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name != "base":
            place: Target = importlib.import_module(f"{__name__}.{module.name}").TARGET
            found[place.slug] = place
    return found


def target(slug: str) -> Target:
    """The target of that name; a KeyError names the ones there are."""
    if slug not in targets():
        raise KeyError(f"Unknown target '{slug}'; allowed: {', '.join(sorted(targets()))}.")
    return targets()[slug]
