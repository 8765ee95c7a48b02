"""`kv-cache-utilization-scorer`: 1 minus the share of KV blocks in use. No parameters."""

from typing import ClassVar

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.table import Floats


class KvCacheUtilizationScorer(PluginParameters, frozen=True, kw_only=True):
    """KV usage as the engine reports it."""

    type: ClassVar[str] = "kv-cache-utilization-scorer"

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        scores: Floats = 1.0 - context.reading(context.table.kv_usage)
        return scores


PLUGINS: tuple[PluginType, ...] = (KvCacheUtilizationScorer,)
