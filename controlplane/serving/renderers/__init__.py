"""From engines as we describe them to the text that a place or a router takes: pure, no Django.

One file per format, found by a scan of this folder; files with a leading underscore are parts that
formats share. A renderer reads no rows, no clock and no network: equal input gives equal text.
What a format cannot express is refused with the field's name, never dropped.
"""

import importlib
import pkgutil
from functools import cache

from controlplane.serving.renderers.base import Renderer


@cache
def renderers() -> dict[str, Renderer]:
    """Every renderer by its name."""
    found: dict[str, Renderer] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name != "base" and not module.name.startswith("_"):
            renderer: Renderer = importlib.import_module(f"{__name__}.{module.name}").RENDERER
            found[renderer.slug] = renderer
    return found


def renderer(slug: str) -> Renderer:
    """The renderer of that name; a KeyError names the ones there are."""
    if slug not in renderers():
        raise KeyError(f"Unknown renderer '{slug}'; allowed: {', '.join(sorted(renderers()))}.")
    return renderers()[slug]
