"""`queue-scorer`: the fewest waiting requests get 1, the most 0, linear between. No parameters."""

from typing import ClassVar

from routing.core.scoring import Context, PluginParameters, PluginType, falling
from routing.core.table import Floats


class QueueScorer(PluginParameters, frozen=True, kw_only=True):
    """Waiting requests as the engine reports them."""

    type: ClassVar[str] = "queue-scorer"

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        return falling(context.reading(context.table.waiting))


PLUGINS: tuple[PluginType, ...] = (QueueScorer,)
