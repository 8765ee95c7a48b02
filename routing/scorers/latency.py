"""`latency-scorer`: endpoints by how far the predicted latency is from the request's targets.

Headroom is target minus prediction; a target that nobody set counts as 0 s. Predictions are our own
learned speeds, not upstream's trained model.

1. Where some endpoints have headroom 0 or more in both and some have not, the latter score 0.
2. Where all lack it, only idle endpoints are scored if there are any; otherwise only the best of
   the groups "TPOT missed", "TTFT missed", "both missed".
3. Headrooms are scaled to 0..1 over the scored endpoints and blended by `ttftWeight` (0.8) and
   `tpotWeight` (0.2); a dimension without a range leaves its weight to the other.
4. `headroomSelectionStrategy` `least` (default) prefers what is closest to the target, `most` the
   largest headroom; what misses is always ordered by how little it misses.

Without any prediction the score is the mean of free KV memory, queue and prefix, weighted by
`compositeKVWeight`, `compositeQueueWeight` and `compositePrefixWeight` (1 each).
"""

from typing import ClassVar, Literal

import msgspec
import numpy as np

from routing.core.scoring import UNKNOWN_SCORE, Context, PluginParameters, PluginType, falling
from routing.core.specs.base import Weight
from routing.core.table import Flags, Floats


class LatencyScorer(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "latency-scorer"
    ttft_weight: Weight = 0.8
    tpot_weight: Weight = 0.2
    headroom_selection_strategy: Literal["least", "most"] = "least"
    composite_kv_weight: Weight = msgspec.field(default=1.0, name="compositeKVWeight")
    composite_queue_weight: Weight = 1.0
    composite_prefix_weight: Weight = 1.0

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        ttft, tpot = context.headroom()
        known: Flags = ~(np.isnan(ttft) | np.isnan(tpot))
        if not known.any():
            return self._composite(context)
        meets: Flags = known & (ttft >= 0) & (tpot >= 0)
        scores: Floats = np.zeros(len(ttft))
        if meets.any():
            # Headroom counts down to the target, so the least of it is wanted, or the most.
            sign = 1.0 if self.headroom_selection_strategy == "least" else -1.0
            scores[meets] = self._blend(sign * ttft[meets], sign * tpot[meets])
        else:
            scored = _least_bad(context, ttft, tpot, known)
            scores[scored] = self._blend(-ttft[scored], -tpot[scored])
        scores[~known] = np.nan
        return scores

    def _blend(self, ttft: Floats, tpot: Floats) -> Floats:
        """1 for the least of both, 0 for the most; all equal is 1."""
        parts = [(self.ttft_weight, ttft), (self.tpot_weight, tpot)]
        ranged = [(weight, values) for weight, values in parts if np.ptp(values) > 0]
        total = sum(weight for weight, _ in ranged)
        if total <= 0:
            return np.ones(len(ttft))
        blended: Floats = np.zeros(len(ttft))
        for weight, values in ranged:
            blended += weight / total * falling(values)
        return blended

    def _composite(self, context: Context) -> Floats:
        table = context.table
        parts = (
            (self.composite_kv_weight, 1.0 - context.reading(table.kv_usage)),
            (self.composite_queue_weight, falling(context.reading(table.waiting))),
            (self.composite_prefix_weight, context.matched_share()),
        )
        total = sum(weight for weight, _ in parts)
        scores: Floats = np.zeros(len(context.rows))
        for weight, part in parts:
            scores += weight * np.where(np.isnan(part), UNKNOWN_SCORE, part)
        return scores / total if total > 0 else np.ones(len(context.rows))


def _least_bad(context: Context, ttft: Floats, tpot: Floats, known: Flags) -> Flags:
    """Which of the endpoints that all miss a target are scored."""
    idle: Flags = known & (context.table.requests[context.rows] == 0)
    groups = (
        idle,
        known & (ttft >= 0) & (tpot < 0),
        known & (ttft < 0) & (tpot >= 0),
        known,
    )
    return next(group for group in groups if group.any())


PLUGINS: tuple[PluginType, ...] = (LatencyScorer,)
