"""`running-requests-size-scorer`: the fewest running requests get 1, the most 0. No parameters."""

from typing import ClassVar

from routing.core.scoring import Context, PluginParameters, PluginType, falling
from routing.core.table import Floats


class RunningRequestsSizeScorer(PluginParameters, frozen=True, kw_only=True):
    """Running requests as the engine reports them."""

    type: ClassVar[str] = "running-requests-size-scorer"

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        return falling(context.reading(context.table.running))


PLUGINS: tuple[PluginType, ...] = (RunningRequestsSizeScorer,)
