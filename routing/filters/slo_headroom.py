"""`slo-headroom-tier-filter`: keep endpoints that are expected to meet the request's targets.

Headroom is target minus prediction, for TTFT and TPOT; a target that nobody set counts as 0 s, so
its headroom is never positive. When some endpoints meet both and some do not, the first are kept,
but with `epsilonExploreNeg` (0.01) the others, so that an endpoint that recovers is noticed. An
endpoint without a prediction is among the others; without any prediction all stay. Predictions are
our own learned speeds, not upstream's trained model.
"""

from typing import ClassVar

import numpy as np

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.specs.base import Share
from routing.core.table import Flags


class SloHeadroomTierFilter(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "slo-headroom-tier-filter"
    epsilon_explore_neg: Share = 0.01

    def keep(self, context: Context) -> Flags:
        """See Filter."""
        ttft, tpot = context.headroom()
        meets: Flags = (ttft >= 0) & (tpot >= 0)
        if not meets.any() or meets.all():
            return np.ones(len(meets), dtype=np.bool_)
        explores = context.rng.random() < self.epsilon_explore_neg
        return ~meets if explores else meets


PLUGINS: tuple[PluginType, ...] = (SloHeadroomTierFilter,)
