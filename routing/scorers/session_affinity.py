"""`session-affinity-scorer`: the endpoint that had the session's last request gets 1, others 0.

Without a session, or on its first request, all get 1. Parameters: `routing.core.session_affinity`.
"""

from typing import ClassVar

import numpy as np

from routing.core.scoring import Context, PluginType
from routing.core.session_affinity import SessionParameters
from routing.core.table import Floats


class SessionAffinityScorer(SessionParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "session-affinity-scorer"

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        row = self.row(context)
        if row < 0:
            return np.ones(len(context.rows))
        return np.where(context.rows == row, 1.0, 0.0)


PLUGINS: tuple[PluginType, ...] = (SessionAffinityScorer,)
