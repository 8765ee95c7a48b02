"""`prefix-cache-scorer`: how much of the prompt an endpoint holds, as its longest unbroken prefix.

The score is matched blocks over the prompt's blocks. `matchLengthWeight` (0) of it is given to the
length instead: matched tokens over `matchLengthScaleTokens` (8192), at most 1; so a long match of a
long prompt can beat a full match of a short one. `prefixMatchInfoProducerName` names the index.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.specs.base import Share
from routing.core.table import Floats


class PrefixCacheScorer(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "prefix-cache-scorer"
    prefix_match_info_producer_name: str = ""
    match_length_weight: Share = 0.0
    match_length_scale_tokens: Annotated[int, msgspec.Meta(ge=1)] = 8192

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        producer, weight = self.prefix_match_info_producer_name, self.match_length_weight
        share = context.matched_share(producer)
        if weight == 0:
            return share
        tokens = context.matched_tokens(producer)
        length = np.minimum(tokens / self.match_length_scale_tokens, 1.0)
        scores: Floats = (1.0 - weight) * share + weight * length
        return scores


PLUGINS: tuple[PluginType, ...] = (PrefixCacheScorer,)
