"""`context-length-aware`: prompts go to endpoints made for their length.

Reads ranges of prompt tokens from the label `label` (`llm-d.ai/context-length-range`), written
`min-max`, several separated by commas. A prompt inside a range scores 1, one outside scores by its
distance: 0.3 times the nearer bound over the length, or the other way round, so the next best range
comes first. An endpoint without a readable range scores 0.5. With `enableFiltering` (false) it is a
filter too: endpoints whose ranges do not hold the prompt are out, those without a range stay.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from routing.core.scoring import UNKNOWN_SCORE, Context, PluginParameters, PluginType
from routing.core.table import Flags, Floats

OUTSIDE = 0.3
Ranges = tuple[tuple[int, int], ...]


class ContextLengthAware(PluginParameters, frozen=True, kw_only=True):
    """See the module."""

    type: ClassVar[str] = "context-length-aware"
    label: Annotated[str, msgspec.Meta(min_length=1)] = "llm-d.ai/context-length-range"
    enable_filtering: bool = False

    def keep(self, context: Context) -> Flags:
        """See Filter."""
        if not self.enable_filtering:
            return np.ones(len(context.rows), dtype=np.bool_)
        tokens = context.prompt_tokens
        ranges = self._ranges(context)
        return np.array(
            [not known or _distance_score(known, tokens) == 1.0 for known in ranges],
            dtype=np.bool_,
        )

    def score(self, context: Context) -> Floats:
        """See Scorer."""
        tokens = context.prompt_tokens
        ranges = self._ranges(context)
        return np.array(
            [_distance_score(known, tokens) if known else UNKNOWN_SCORE for known in ranges]
        )

    def _ranges(self, context: Context) -> list[Ranges]:
        instances = context.table.instances
        return [ranges_of(instances[row].spec.labels.get(self.label, "")) for row in context.rows]


def ranges_of(text: str) -> Ranges:
    """`"0-2048,8192-16384"` as pairs; () when any part is no range."""
    found = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not (dash and low.isdecimal() and high.isdecimal()) or len(part) > 40:
            return ()
        if int(low) > int(high):
            return ()
        found.append((int(low), int(high)))
    return tuple(found)


def _distance_score(ranges: Ranges, tokens: int) -> float:
    best = 0.0
    for low, high in ranges:
        if low <= tokens <= high:
            return 1.0
        near = tokens / low if tokens < low else high / tokens
        best = max(best, OUTSIDE * near)
    return best


PLUGINS: tuple[PluginType, ...] = (ContextLengthAware,)
