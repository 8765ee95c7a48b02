"""`prefix-cache-affinity-filter`: stay with endpoints that hold most of the prompt.

Endpoints whose matched share is at least `affinityThreshold` (0.80) are kept, all of them when
none reaches it. With `explorationProbability` (0) the filter is skipped for a request. It is also
skipped when the best of the kept endpoints would make the request wait longer than the best of the
others by more than `maxTTFTPenaltyMs` (18000; 0 always stays). By `ttftSource` the difference comes
from tokens in flight over `peakPrefillThroughput` (15928 tokens/s), or from predicted times to the
first token (`latencyPredictor`: our own price); where those are unknown it stays.
"""

from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.specs.base import Rate, Share
from routing.core.table import Flags, Floats


class PrefixCacheAffinityFilter(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "prefix-cache-affinity-filter"
    affinity_threshold: Share = 0.80
    exploration_probability: Share = 0.0
    max_ttft_penalty_ms: Annotated[float, msgspec.Meta(ge=0)] = msgspec.field(
        default=18_000.0, name="maxTTFTPenaltyMs"
    )
    ttft_source: Literal["prefillThroughput", "latencyPredictor"] = "prefillThroughput"
    peak_prefill_throughput: Rate = 15_928.0

    def keep(self, context: Context) -> Flags:
        """See Filter."""
        everybody = np.ones(len(context.rows), dtype=np.bool_)
        if self.exploration_probability and context.rng.random() < self.exploration_probability:
            return everybody
        sticky: Flags = context.matched_share() >= self.affinity_threshold
        if not sticky.any() or sticky.all():
            return everybody
        return everybody if self._is_too_late(context, sticky) else sticky

    def _is_too_late(self, context: Context, sticky: Flags) -> bool:
        if self.max_ttft_penalty_ms == 0:
            return False
        seconds = self._seconds(context)
        here = float(np.fmin.reduce(seconds[sticky], initial=np.inf))
        there = float(np.fmin.reduce(seconds[~sticky], initial=np.inf))
        if not (np.isfinite(here) and np.isfinite(there)):
            return False
        return here - there > self.max_ttft_penalty_ms / 1000

    def _seconds(self, context: Context) -> Floats:
        if self.ttft_source == "latencyPredictor":
            return context.latencies()[0]
        waiting = context.memory.tokens_in_flight(context.table)[context.rows]
        seconds: Floats = waiting / self.peak_prefill_throughput
        return seconds


PLUGINS: tuple[PluginType, ...] = (PrefixCacheAffinityFilter,)
