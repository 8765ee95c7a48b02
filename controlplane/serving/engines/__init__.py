"""How engines are started: one file per engine, pure functions from a description to a command."""

import importlib
import pkgutil
from functools import cache

from controlplane.serving.engines.base import EngineLauncher


@cache
def launchers() -> dict[str, EngineLauncher]:
    """Every engine of this folder by its name; the scan finds the files."""
    found: dict[str, EngineLauncher] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name != "base":
            engine: EngineLauncher = importlib.import_module(f"{__name__}.{module.name}").ENGINE
            found[engine.slug] = engine
    return found


def launcher(slug: str) -> EngineLauncher:
    """The engine of that name; a KeyError names the ones there are."""
    if slug not in launchers():
        raise KeyError(f"Unknown engine '{slug}'; allowed: {', '.join(sorted(launchers()))}.")
    return launchers()[slug]
