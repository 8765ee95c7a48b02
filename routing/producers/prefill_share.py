"""How much of its time an endpoint spends on prompts: outputs are that much slower.

An engine that computes prompts half of the time makes tokens only in the other half, whatever its
step time. The share is the prompts done per second times their cost, averaged over about ten
seconds; the column `stretch` is 1 / (1 - share).
"""

import math

import numpy as np

from routing.core.speed_model import ATTENDED_SHARE
from routing.core.table import EndpointTable, Floats

AVERAGE_SECONDS = 10.0
MOST = 0.8
"""Above it the queue of prompts says more than the average."""


class PrefillShare:
    """Looks at the table's sums once in a while; follows it when rows change."""

    def __init__(self) -> None:
        self._table: EndpointTable | None = None
        self._at = 0.0
        self._done: Floats = np.zeros(0)

    def refresh(self, table: EndpointTable, *, now: float) -> None:
        """Bring `stretch` up to date; the first look at a table only takes its sums."""
        if table is self._table and now > self._at:
            elapsed = now - self._at
            typical = table.context_tokens / np.maximum(table.sequences, 1.0)
            rate = table.prefill_seconds_per_token + (
                table.prefill_seconds_per_token_and_context * (typical * ATTENDED_SHARE)
            )
            done = (table.prefill_done_tokens - self._done) * rate
            share = np.clip(done / elapsed, 0.0, MOST)
            before = 1.0 - 1.0 / table.stretch
            mixed = before + (1.0 - math.exp(-elapsed / AVERAGE_SECONDS)) * (share - before)
            table.stretch[:] = 1.0 / (1.0 - mixed)
        self._table, self._at = table, now
        self._done = table.prefill_done_tokens.copy()
