"""`max-score-picker`: the highest sum wins; equal sums are drawn at random.

`maxNumOfEndpoints` (1) is how many destinations upstream names at once. The order of all candidates
is given here, and how many fallbacks are used is the pool's limit of attempts.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import PluginParameters, PluginType
from routing.core.table import Floats

EQUAL = 1e-9
"""Sums of the same scores in another order differ in their last bits."""


class MaxScorePicker(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "max-score-picker"
    max_num_of_endpoints: Annotated[int, msgspec.Meta(ge=1)] = 1

    def pick(self, totals: Floats, rng: np.random.Generator) -> list[int]:
        """See Picker."""
        luck = rng.random(len(totals))
        order: list[int] = np.lexsort((luck, -np.round(totals / EQUAL))).tolist()
        return order


PLUGINS: tuple[PluginType, ...] = (MaxScorePicker,)
