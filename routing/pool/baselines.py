"""The policies to compare against: random, round robin, least requests. They know no cache.

When the chosen endpoint has the role decode and a pair is allowed, the prefill endpoint is chosen
by the same rule.
"""

from collections.abc import Sequence

import numpy as np

from routing.core.table import EndpointTable


class Baselines:
    """Order rows, best first. The counters of round robin live here, one per choice made."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._turn = {"answer": 0, "prefill": 0}

    def order(
        self, policy: str, rows: Sequence[int], table: EndpointTable, *, choice: str
    ) -> list[int]:
        """Rows in the order in which `policy` would use them; `choice` is answer or prefill."""
        if policy == "random":
            return [int(row) for row in self._rng.permutation(rows)]
        if policy == "round-robin":
            return self._rotated(rows, choice)
        return self._least(rows, table)

    def _rotated(self, rows: Sequence[int], choice: str) -> list[int]:
        start = self._turn[choice] % len(rows)
        self._turn[choice] += 1
        return [*rows[start:], *rows[:start]]

    def _least(self, rows: Sequence[int], table: EndpointTable) -> list[int]:
        # Equal loads are broken at random, otherwise the first row takes every quiet moment.
        luck = self._rng.random(len(rows))
        load = table.requests[list(rows)]
        return [int(rows[position]) for position in np.lexsort((luck, load))]
