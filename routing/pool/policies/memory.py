"""What a policy remembers between requests: recent prompts, open work, cold requests, sessions.

The producers of llm-d that have a counterpart here:

- `approx-prefix-cache-producer`: own decisions in an LRU per endpoint. Block keys of the router
  stand for blocks of `blockSizeTokens` (16, raised to 64): of shorter keys every second, fourth ...
  is taken, which is the same chain in longer steps. At most `maxPrefixBlocksToMatch` (2048) blocks
  or `maxPrefixTokensToMatch` (131072) tokens are looked at. With `autoTune` an endpoint of a known
  cache size holds so many blocks, otherwise `lruCapacityPerServer` (31250).
- `precise-prefix-cache-producer`: the router's own index, exact where the engine publishes events.
- `inflight-load-producer`: prompt tokens of open requests that were not expected to be cached.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.core.scoring import Context, PluginParameters, PrefixMatch
from routing.core.table import EndpointTable, Floats, Instance
from routing.producers.recent_blocks import RecentBlocks

APPROXIMATE = "approx-prefix-cache-producer"
PRECISE = "precise-prefix-cache-producer"
LEAST_BLOCK_TOKENS = 64
MOST_SESSIONS = 100_000


class ApproximateProducer(PluginParameters, frozen=True, kw_only=True):
    """Parameters of the approximate index; `blockSize` is a deprecated number of characters."""

    type: ClassVar[str] = APPROXIMATE
    auto_tune: bool = True
    block_size_tokens: int = 16
    max_prefix_blocks_to_match: int = 2048
    max_prefix_tokens_to_match: int = 131_072
    lru_capacity_per_server: int = 31_250

    @property
    def block_tokens(self) -> int:
        return max(LEAST_BLOCK_TOKENS, self.block_size_tokens)

    @property
    def most_blocks(self) -> int:
        """Blocks of a prompt that are looked at; 0 upstream is no limit."""
        limits = [
            limit
            for limit in (
                self.max_prefix_blocks_to_match,
                self.max_prefix_tokens_to_match // self.block_tokens,
            )
            if limit > 0
        ]
        return min(limits, default=2**31)


class PolicyMemory:
    """See the module. Nothing of it grows without bound."""

    def __init__(
        self,
        approximate: Mapping[str, ApproximateProducer],
        *,
        default: str = PRECISE,
        lru_size: int = 0,
    ) -> None:
        """`default` is the index of whoever names none; every name that is not approximate is the
        router's own index. `lru_size` endpoints are remembered for cold requests.
        """
        self._producers = {
            name: (parameters, RecentBlocks(capacity_blocks=parameters.lru_capacity_per_server))
            for name, parameters in approximate.items()
        }
        self._default = default
        self._lru_size = lru_size
        self._cold: OrderedDict[Instance, None] = OrderedDict()
        """Endpoints in the order of their last cold request, oldest first."""
        self._open: dict[int, tuple[Instance, int]] = {}
        self._loads: dict[Instance, int] = {}
        self._sessions: OrderedDict[str, tuple[Instance, float]] = OrderedDict()
        self._last: tuple[Context, str, PrefixMatch] | None = None
        self._table: EndpointTable | None = None

    def match(self, context: Context, producer: str) -> PrefixMatch:
        """See Memory. Several plugins of one decision ask for the same."""
        last = self._last
        if last is not None and last[0] is context and last[1] == producer:
            return last[2]
        found = self._match(context, producer)
        self._last = (context, producer, found)
        return found

    def _match(self, context: Context, producer: str) -> PrefixMatch:
        parsed, entry = context.request.parsed, self._producers.get(producer or self._default)
        if entry is None:
            tokens = context.indexed_tokens
            if tokens is None:
                tokens = np.zeros(len(context.table))
            share = tokens / max(1, parsed.prompt_tokens)
            return PrefixMatch(share=np.minimum(share, 1.0), tokens=tokens)
        parameters, index = entry
        keys, step = blocks_of(context.request, parameters)
        depths = index.depths(context.table, keys, now=context.now)
        return PrefixMatch(share=depths / max(1, len(keys)), tokens=depths * step)

    def tokens_in_flight(self, table: EndpointTable) -> Floats:
        """See Memory."""
        loads = self._loads
        return np.array([loads.get(known, 0) for known in table.instances], dtype=np.float64)

    def cold_order(self, table: EndpointTable) -> Floats:
        """See Memory."""
        rank = {instance: place for place, instance in enumerate(self._cold)}
        return np.array([rank.get(known, -1) for known in table.instances], dtype=np.float64)

    def session_row(self, context: Context, seconds: float) -> int:
        """See Memory."""
        instance, at = self._sessions.get(context.request.session or "", (None, 0.0))
        if instance is None or not instance.is_alive or context.now - at > seconds:
            return -1
        return instance.row

    def began(self, lease: Lease, table: EndpointTable, *, now: float) -> None:
        """Record where a request went; with a pair both ends will hold its prompt."""
        self._last = None
        if table is not self._table:
            self._table = table
            self._forget_the_gone()
        is_cold = self._record_prompt(lease, table, now=now)
        prompt_end = lease.prompt_instance
        self._open[lease.number] = (prompt_end, lease.work_tokens)
        self._loads[prompt_end] = self._loads.get(prompt_end, 0) + lease.work_tokens
        if self._lru_size and is_cold:
            for instance in _ends(lease):
                self._cold[instance] = None
                self._cold.move_to_end(instance)
            while len(self._cold) > self._lru_size:
                self._cold.popitem(last=False)
        session = lease.request.session
        if session:
            self._sessions[session] = (lease.destination, now)
            self._sessions.move_to_end(session)
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)

    def _record_prompt(self, lease: Lease, table: EndpointTable, *, now: float) -> bool:
        """Put the prompt into every index; true when no endpoint had any of it."""
        is_cold = lease.decision.predicted.indexed_tokens == 0
        for parameters, index in self._producers.values():
            keys, _ = blocks_of(lease.request, parameters)
            if self._lru_size:
                is_cold = not index.depths(table, keys[:1], now=now).any()
            for instance in _ends(lease):
                capacity = np.inf
                if parameters.auto_tune and instance.is_alive:
                    known = table.capacity_tokens[instance.row] / parameters.block_tokens
                    capacity = known if known > 0 else np.inf
                index.insert(table, instance, keys, now=now, capacity_blocks=capacity)
        return is_cold

    def ended(self, lease: Lease) -> None:
        """Take back what `began` added; a lease that was not seen does nothing."""
        instance, tokens = self._open.pop(lease.number, (None, 0))
        if instance is None:
            return
        rest = self._loads.get(instance, 0) - tokens
        if rest > 0:
            self._loads[instance] = rest
        else:
            self._loads.pop(instance, None)

    def forget(self) -> None:
        """Believe all caches empty and forget sessions; open work stays, it is running."""
        self._last = None
        self._cold.clear()
        self._sessions.clear()
        for _, index in self._producers.values():
            index.forget()

    def _forget_the_gone(self) -> None:
        """Leases of dead instances end without a word to anybody."""
        gone = [number for number, (known, _) in self._open.items() if not known.is_alive]
        for number in gone:
            del self._open[number]
        self._loads = {known: load for known, load in self._loads.items() if known.is_alive}


def _ends(lease: Lease) -> tuple[Instance, ...]:
    """Where the prompt will be: at the destination and, with a pair, where it is computed."""
    return (lease.destination,) if lease.prefill is None else (lease.destination, lease.prefill)


def blocks_of(
    request: InferenceRequest, parameters: ApproximateProducer
) -> tuple[Sequence[int], float]:
    """Keys of a prompt in the producer's blocks, and the tokens behind one of them."""
    parsed = request.parsed
    stride = max(1, round(parameters.block_tokens / max(parsed.chunk_tokens, 1e-9)))
    keys: Any = parsed.block_keys[stride - 1 :: stride][: parameters.most_blocks]
    return keys.tolist(), stride * parsed.chunk_tokens
