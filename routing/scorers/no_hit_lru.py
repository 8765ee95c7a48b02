"""`no-hit-lru-scorer`: a prompt that nobody has cached goes where the last such one is longest ago.

When some candidate holds a part of the prompt all get 0.5. Otherwise an endpoint that never took a
cold prompt gets 1, and those that did are ranked by when: the latest gets 0. `lruSize` (1024)
endpoints are remembered. `prefixPluginType` and `prefixPluginName` name the scorer whose index says
what is cold; it is the profile's index here.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import UNKNOWN_SCORE, Context, PluginParameters, PluginType
from routing.core.table import Floats


class NoHitLruScorer(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "no-hit-lru-scorer"
    lru_size: Annotated[int, msgspec.Meta(ge=1)] = 1024
    prefix_plugin_type: str = "prefix-cache-scorer"
    prefix_plugin_name: str = "prefix-cache-scorer"

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        count = len(context.rows)
        if (context.matched_share() > 0).any():
            return np.full(count, UNKNOWN_SCORE)
        last = context.memory.cold_order(context.table)[context.rows]
        used = int((last >= 0).sum())
        if used == 0 or count == 1:
            return np.ones(count)
        # Ranks among the candidates: the oldest use is next to those never used.
        place = np.argsort(np.argsort(last, kind="stable"), kind="stable")
        ranked = 1.0 - place / (count - 1)
        return np.where(last < 0, 1.0, ranked)


PLUGINS: tuple[PluginType, ...] = (NoHitLruScorer,)
