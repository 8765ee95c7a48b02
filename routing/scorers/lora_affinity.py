"""`lora-affinity-scorer`: endpoints that have the request's adapter at hand. No parameters.

1.0 the adapter runs there, 0.8 there is room for one more, 0.6 it waits to be loaded, 0 full. Two
differences: an adapter that is loaded and idle counts as running, because the engine's gauge lists
only those in use, and a request for the base model gets 1 everywhere, for it needs no room. Where
the engine says nothing of adapters the score is unknown.
"""

from typing import ClassVar

import numpy as np

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.table import EndpointTable, Floats

RUNNING, ROOM, WAITING, FULL = 1.0, 0.8, 0.6, 0.0


class LoraAffinityScorer(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "lora-affinity-scorer"

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        adapter = context.request.adapter
        if adapter is None:
            return np.ones(len(context.rows))
        return np.array([_score(context.table, int(row), adapter) for row in context.rows])


def _score(table: EndpointTable, row: int, adapter: str) -> float:
    instance = table.instances[row]
    known = instance.adapters
    if adapter in known.running or adapter in known.loaded:
        return RUNNING
    most = known.most or instance.spec.max_adapters
    if most is None:
        return WAITING if adapter in known.waiting else float("nan")
    if len(known.running | known.loaded | known.waiting) < most:
        return ROOM
    return WAITING if adapter in known.waiting else FULL


PLUGINS: tuple[PluginType, ...] = (LoraAffinityScorer,)
