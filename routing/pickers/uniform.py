"""`random-picker`: any candidate. `maxNumOfEndpoints` as in `max-score-picker`."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import PluginParameters, PluginType
from routing.core.table import Floats


class RandomPicker(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "random-picker"
    max_num_of_endpoints: Annotated[int, msgspec.Meta(ge=1)] = 1

    def pick(self, totals: Floats, rng: np.random.Generator) -> list[int]:
        """See Picker."""
        order: list[int] = rng.permutation(len(totals)).tolist()
        return order


PLUGINS: tuple[PluginType, ...] = (RandomPicker,)
