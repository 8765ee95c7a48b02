"""`session-affinity-filter`: keeps only the session's endpoint, as long as it is a candidate.

Without a session, or on its first request, all stay. Parameters: `routing.core.session_affinity`.
"""

from typing import ClassVar

import numpy as np

from routing.core.scoring import Context, PluginType
from routing.core.session_affinity import SessionParameters
from routing.core.table import Flags


class SessionAffinityFilter(SessionParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "session-affinity-filter"

    def keep(self, context: Context) -> Flags:
        """See Filter."""
        kept: Flags = context.rows == self.row(context)
        return kept if kept.any() else np.ones(len(kept), dtype=np.bool_)


PLUGINS: tuple[PluginType, ...] = (SessionAffinityFilter,)
