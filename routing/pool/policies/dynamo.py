"""`dynamo`: least prefill still to do plus blocks being decoded, counted in KV blocks.

    cost = max(prefill blocks in flight + blocks of this prompt - credit, 0) + blocks in decode

Credit per cached block is 1.0 on the device. Upstream gives 0.75 in host memory and 0.25 on disk;
here a lower tier counts as in the router's own index. Lowest cost wins;
temperature 0, so ties go to the first. A block that open sequences share counts once: what each
holds beyond what it found in the cache. Cached blocks are those of the router's own index where the
engine publishes events, otherwise own decisions of the last 120 s.

In a P/D pool the destination is the endpoint with the least blocks in decode, and the prefill
endpoint the one with the least prefill cost. A prompt stays at its destination when fewer than
2,048 of its tokens are not cached there, or more than 0.7 of them are.
"""

from collections.abc import Sequence

import numpy as np

from routing.core.lease import Lease
from routing.core.scoring import Context
from routing.core.table import EndpointTable, Floats
from routing.pool.policies.base import Ranking
from routing.pool.policies.memory import PolicyMemory
from routing.producers.recent_blocks import RecentBlocks

ENTRY_SECONDS = 120.0
LOCAL_TOKENS = 2048
LOCAL_SHARE = 0.7
TREE_BLOCKS = 262_144


class Dynamo:
    """See the module."""

    def __init__(self) -> None:
        self._recent = RecentBlocks(capacity_blocks=TREE_BLOCKS, lifetime_seconds=ENTRY_SECONDS)
        self._memory = PolicyMemory({})

    @property
    def memory(self) -> PolicyMemory:
        """See PeerPolicy."""
        return self._memory

    def choose(self, context: Context) -> Ranking:
        """See PeerPolicy."""
        cached = self._cached_tokens(context)
        table = context.table
        prefill = (table.prefill_tokens + context.prompt_tokens - cached) / table.block_tokens
        prefill_cost = np.maximum(prefill, 0.0)
        decode_cost = table.private_tokens / table.block_tokens
        rows = context.rows.tolist()
        ordered = _by_cost(rows, np.where(table.is_decode, decode_cost, prefill_cost + decode_cost))
        local = _by_cost(rows, prefill_cost + decode_cost)
        able = context.prefills_of(ordered[0])
        if not able or self._stays_local(context, float(cached[ordered[0]])):
            return Ranking(rows=local, reason="least blocks")
        return Ranking(
            rows=ordered, prefill=_by_cost(able, prefill_cost)[0], reason="least blocks, in a pair"
        )

    def _stays_local(self, context: Context, cached: float) -> bool:
        missing = context.prompt_tokens - cached
        return missing < LOCAL_TOKENS or cached > LOCAL_SHARE * context.prompt_tokens

    def _cached_tokens(self, context: Context) -> Floats:
        parsed = context.request.parsed
        depths = self._recent.depths(context.table, parsed.block_keys.tolist(), now=context.now)
        tokens: Floats = depths * parsed.chunk_tokens
        if context.is_exact is not None and context.indexed_tokens is not None:
            tokens = np.where(context.is_exact, context.indexed_tokens, tokens)
        return tokens

    def began(self, lease: Lease, table: EndpointTable, *, now: float) -> None:
        """See PeerPolicy."""
        keys = lease.request.parsed.block_keys.tolist()
        self._recent.insert(table, lease.destination, keys, now=now)
        if lease.prefill is not None:
            self._recent.insert(table, lease.prefill, keys, now=now)

    def ended(self, lease: Lease) -> None:
        """Loads are the router's own leases."""

    def forget(self) -> None:
        """See PeerPolicy."""
        self._recent.forget()


def _by_cost(rows: Sequence[int], costs: Floats) -> list[int]:
    """Cheapest first, ties in the document's order."""
    order = np.argsort(costs[list(rows)], kind="stable")
    return [int(rows[position]) for position in order]
