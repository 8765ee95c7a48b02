"""`sglang-cache-aware`: the longest prefix in a tree of own requests, unless loads are far apart.

1. When the most requests in flight exceed the fewest by more than 64 and by more than 1.5 times,
   the endpoint with the fewest is used.
2. Else the endpoint with the longest match, if that is more than 0.3 of the prompt, whatever its
   load.
3. Else the one with the fewest requests; the first in the document on ties.
4. The prompt is inserted for whoever was chosen. Per endpoint 67,108,864 characters are kept, and
   leaves go first.

The tree upstream is one of characters. Here it is one of the router's chained block keys, each
standing for the characters of its chunk, so a match is rounded down to whole chunks. Upstream
evicts once in 60 s; here at once. In a P/D pool both ends are chosen by this rule.
"""

from collections.abc import Sequence

import numpy as np

from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.core.scoring import Context
from routing.core.table import EndpointTable, Floats
from routing.pool.policies.base import Ranking
from routing.pool.policies.memory import PolicyMemory
from routing.producers.recent_blocks import RecentBlocks

BALANCE_ABSOLUTE = 64
BALANCE_RELATIVE = 1.5
CACHE_THRESHOLD = 0.3
TREE_CHARACTERS = 67_108_864
CHUNK_CHARACTERS = 256
"""Characters of the smallest usual chunk; it turns the bound into blocks."""


class SglangCacheAware:
    """See the module."""

    def __init__(self) -> None:
        self._tree = RecentBlocks(capacity_blocks=TREE_CHARACTERS // CHUNK_CHARACTERS)
        self._memory = PolicyMemory({})

    @property
    def memory(self) -> PolicyMemory:
        """See PeerPolicy."""
        return self._memory

    def choose(self, context: Context) -> Ranking:
        """See PeerPolicy."""
        shares = self._shares(context)
        rows, reason = _ordered(context, context.rows.tolist(), shares)
        able = context.prefills_of(rows[0])
        prefill = _ordered(context, able, shares)[0][0] if able else -1
        return Ranking(rows=rows, prefill=prefill, reason=reason)

    def _shares(self, context: Context) -> Floats:
        """Matched characters of all, per row."""
        keys = context.request.parsed.block_keys.tolist()
        depths = self._tree.depths(context.table, keys, now=context.now)
        shares: Floats = depths * _characters_per_key(context.request)
        return shares

    def began(self, lease: Lease, table: EndpointTable, *, now: float) -> None:
        """See PeerPolicy: both ends of a pair hold the prompt."""
        keys = lease.request.parsed.block_keys.tolist()
        self._tree.insert(table, lease.destination, keys, now=now)
        if lease.prefill is not None:
            self._tree.insert(table, lease.prefill, keys, now=now)

    def ended(self, lease: Lease) -> None:
        """Loads are the router's own leases."""

    def forget(self) -> None:
        """See PeerPolicy."""
        self._tree.forget()


def _characters_per_key(request: InferenceRequest) -> float:
    """Share of the prompt that one block key stands for."""
    parsed = request.parsed
    return parsed.chunk_tokens / max(parsed.prompt_tokens, parsed.chunk_tokens, 1e-9)


def _ordered(context: Context, rows: Sequence[int], shares: Floats) -> tuple[list[int], str]:
    """The chosen row, then the others by load; and which rule chose."""
    load = context.table.requests[list(rows)]
    by_load = [int(rows[position]) for position in np.argsort(load, kind="stable")]
    most, fewest = float(load.max()), float(load.min())
    if most - fewest > BALANCE_ABSOLUTE and most > BALANCE_RELATIVE * fewest:
        return by_load, "loads far apart: fewest requests"
    found = shares[list(rows)]
    best = int(found.argmax())
    if found[best] <= CACHE_THRESHOLD:
        return by_load, "no long match: fewest requests"
    first = int(rows[best])
    return [first, *(row for row in by_load if row != first)], "longest match"
