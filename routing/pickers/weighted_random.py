"""`weighted-random-picker`: drawn with a probability in proportion to the sum.

A candidate with a sum of 0 is never drawn before one with more; when all are 0 the draw is
uniform. Drawing without replacement by the largest `u ^ (1 / sum)` with `u` uniform (Efraimidis and
Spirakis, 2006). `maxNumOfEndpoints` as in `max-score-picker`.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import PluginParameters, PluginType
from routing.core.table import Floats


class WeightedRandomPicker(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "weighted-random-picker"
    max_num_of_endpoints: Annotated[int, msgspec.Meta(ge=1)] = 1

    def pick(self, totals: Floats, rng: np.random.Generator) -> list[int]:
        """See Picker."""
        # An exponential draw over the sum has the order of the keys and no underflow.
        draws = rng.standard_exponential(len(totals))
        with np.errstate(divide="ignore"):
            keys = np.where(totals > 0, draws / np.maximum(totals, 1e-300), np.inf)
        order: list[int] = np.lexsort((draws, keys)).tolist()
        return order


PLUGINS: tuple[PluginType, ...] = (WeightedRandomPicker,)
