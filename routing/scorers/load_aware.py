"""`load-aware-scorer` (deprecated upstream): an empty queue gets 0.5, `threshold` waiting get 0.

Linear between; `threshold` (128) requests. It never gives more than 0.5, so that together with a
prefix score of the same weight a full cache wins over an empty queue.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.table import Floats

MOST = 0.5


class LoadAwareScorer(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "load-aware-scorer"
    threshold: Annotated[int, msgspec.Meta(ge=1)] = 128

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        load = context.reading(context.table.waiting) / self.threshold
        scores: Floats = MOST * (1.0 - np.minimum(load, 1.0))
        return scores


PLUGINS: tuple[PluginType, ...] = (LoadAwareScorer,)
