"""`token-load-scorer`: fewer uncached tokens in flight, this prompt's included, score higher.

1 at no token, 0 at `queueThresholdTokens` (4194304, 128 requests of 32 k tokens) and above.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.table import Floats


class TokenLoadScorer(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "token-load-scorer"
    queue_threshold_tokens: Annotated[int, msgspec.Meta(ge=1)] = 4_194_304

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        load = context.token_load() / self.queue_threshold_tokens
        scores: Floats = 1.0 - np.minimum(load, 1.0)
        return scores


PLUGINS: tuple[PluginType, ...] = (TokenLoadScorer,)
