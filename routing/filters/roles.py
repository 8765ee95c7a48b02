"""`decode-filter` and `prefill-filter`: endpoints by what they were made for. No parameters.

Upstream reads the label `llm-d.ai/role`; here the role stands in the pool document. An endpoint of
role `both` takes part in decode; it never computes prompts for others here, so it is no prefill
endpoint, although upstream's filter would keep it.
"""

from typing import ClassVar

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.table import Flags


class DecodeFilter(PluginParameters, frozen=True, kw_only=True):
    """Keeps whatever answers clients."""

    type: ClassVar[str] = "decode-filter"

    def keep(self, context: Context) -> Flags:
        """See Filter."""
        kept: Flags = context.table.answers[context.rows]
        return kept


class PrefillFilter(PluginParameters, frozen=True, kw_only=True):
    """Keeps whatever computes prompts for others."""

    type: ClassVar[str] = "prefill-filter"

    def keep(self, context: Context) -> Flags:
        """See Filter."""
        kept: Flags = context.table.is_prefill[context.rows]
        return kept


PLUGINS: tuple[PluginType, ...] = (DecodeFilter, PrefillFilter)
