"""`active-request-scorer`: fewer requests in flight from this router score higher.

At most `idleThreshold` (0) requests get 1. Others get `maxBusyScore` (1.0) times 1 minus their
share of the largest count, so the busiest gets 0 and a `maxBusyScore` below 1 leaves a gap to the
idle ones. When all candidates are equally busy each gets `maxBusyScore`.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.specs.base import Share
from routing.core.table import Floats


class ActiveRequestScorer(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "active-request-scorer"
    idle_threshold: Annotated[int, msgspec.Meta(ge=0)] = 0
    max_busy_score: Share = 1.0

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        active = context.table.requests[context.rows]
        most = float(active.max(initial=0.0))
        busy = 1.0 - active / max(most, 1.0)
        if active.min(initial=most) >= most:
            busy = np.ones(len(active))
        scores: Floats = np.where(
            active <= self.idle_threshold, 1.0, np.minimum(busy, 1.0) * self.max_busy_score
        )
        return scores


PLUGINS: tuple[PluginType, ...] = (ActiveRequestScorer,)
