"""Everything a pool's router knows between two decisions, and how each event changes it.

One object per pool. It owns the table and the producers; policies read from it, only the router's
methods write to it. What is tied to an instance vanishes with the instance.
"""

import math

import msgspec
import numpy as np

from routing.core.document import EndpointSpec, PoolDocument
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Floats, Instance
from routing.pool.eligibility import EligibilityRules
from routing.pool.pairs import PairTable
from routing.producers import trust
from routing.producers.breakers import CLOSED, BreakerBook
from routing.producers.engine_load import STALE_SECONDS, EngineLoad
from routing.producers.leases import LeaseBook
from routing.producers.lengths import BytesPerToken, OutputLengths
from routing.producers.prefix_index import PrefixIndex
from routing.producers.speeds import LearnedSpeeds
from routing.producers.tenants import TenantLimits

UNKNOWN_CAPACITY_TOKENS = 200_000
"""Index size for an endpoint that says nothing about its cache; about half an 80 GB card's."""


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """Prompt tokens in each endpoint's cache, shape `(n,)`, below the prompt's length."""

    indexed: Floats
    """What the index says."""
    trusted: Floats
    """The same, times trust."""


class Knowledge:
    """See the module. `install` swaps the document and keeps what is still true."""

    def __init__(self, document: PoolDocument, *, now: float) -> None:
        self.document = document
        self.index = PrefixIndex()
        self.leases = LeaseBook()
        self.lengths = OutputLengths()
        self.bytes_per_token = BytesPerToken(document.prompt_identity.bytes_per_token)
        self.speeds = LearnedSpeeds(document.speed_classes)
        self.engines = EngineLoad()
        self.breakers: BreakerBook[Instance] = BreakerBook()
        self.pair_breakers: BreakerBook[tuple[Instance, Instance]] = BreakerBook()
        self.tenants = TenantLimits(document.tenants, now=now)
        self._next_expiry = now
        instances = [self._new_instance(spec, row) for row, spec in enumerate(document.endpoints)]
        self._rebuild(document, instances, now=now)
        self.speeds.install(self.table, document.speed_classes)
        self._fit_index()

    def install(self, document: PoolDocument, *, now: float) -> None:
        """Swap the document. Unchanged (id, instance) keep everything, the others start empty."""
        old_table, old_pairs, old = self.table, self.pairs, self.document
        self.document = document
        known = {
            (instance.spec.id, instance.spec.instance): instance for instance in old_table.instances
        }
        instances, rows = [], {}
        for row, spec in enumerate(document.endpoints):
            instance = known.pop((spec.id, spec.instance), None)
            if instance is None:
                instance = self._new_instance(spec, row)
            else:
                rows[row] = instance.row
                instance.spec, instance.row = spec, row
            instances.append(instance)
        for gone in known.values():
            gone.row = -1
            self.index.remove(gone.slot)
        self._rebuild(document, instances, now=now)
        self.table.adopt(old_table, rows)
        self.pairs.adopt(old_pairs, rows)
        self.speeds.install(self.table, document.speed_classes)
        self._forget_the_gone(now=now)
        self.tenants.apply(document.tenants, now=now)
        self.bytes_per_token.first_guess = document.prompt_identity.bytes_per_token
        self._fit_index()
        if document.prompt_identity != old.prompt_identity:
            # Keys of another chunk size never match again.
            self.forget_prefixes()

    def _fit_index(self) -> None:
        """Give each instance its share of the index, which depends on how many there are."""
        capacities = self.table.capacity_tokens.tolist()
        for instance, tokens in zip(self.table.instances, capacities, strict=True):
            known_tokens = UNKNOWN_CAPACITY_TOKENS if math.isnan(tokens) else tokens
            self.index.set_capacity(instance.slot, self.blocks(known_tokens))

    def _forget_the_gone(self, *, now: float) -> None:
        self.engines.keep_alive_only()
        alive = set(self.table.instances)
        self.breakers.keep_only(lambda instance: instance in alive)
        self.pair_breakers.keep_only(lambda pair: pair[0] in alive and pair[1] in alive)
        self.leases.forget_dead(self.table, now=now)

    def _new_instance(self, spec: EndpointSpec, row: int) -> Instance:
        tokens = spec.kv_capacity_tokens or UNKNOWN_CAPACITY_TOKENS
        slot = self.index.add(capacity_blocks=self.blocks(tokens))
        return Instance(spec, row, slot)

    def _rebuild(self, document: PoolDocument, instances: list[Instance], *, now: float) -> None:
        self.table = EndpointTable(document, instances, now=now)
        self.rules = EligibilityRules(self.table)
        self.pairs = PairTable(document, self.table)

    def blocks(self, tokens: float, *, model: str | None = None) -> int:
        """Block keys that so many tokens of KV make."""
        ratio = self.bytes_per_token.of(model or self.document.models[0].name)
        return int(tokens * ratio / self.document.prompt_identity.chunk_bytes)

    def forget(self) -> None:
        """Back to the class priors and to empty caches; leases and breakers stay."""
        self.forget_prefixes()
        self.lengths.forget()
        self.bytes_per_token.forget()
        self.pairs.forget()
        self.speeds.forget(self.table)
        trust.forget(self.table)

    def forget_prefixes(self) -> None:
        """Believe all caches empty."""
        for instance in self.table.instances:
            self.index.clear(instance.slot)

    def refresh(self, *, now: float) -> None:
        """Let time pass: prompts that are probably computed, readings that are too old.

        The latter are looked at once a second.
        """
        self.leases.settle(self.table, now=now)
        if now >= self._next_expiry:
            self._next_expiry = now + 1.0
            self.engines.expire(self.table, now=now)

    def hits(self, request: InferenceRequest) -> Hits:
        """Tokens of the prompt that each endpoint is believed to hold."""
        parsed, table = request.parsed, self.table
        depths = self.index.match(parsed.block_keys.tolist())[table.slots]
        # Engines reuse whole blocks of their own size; half a token forgives rounding.
        blocks = np.floor((depths * parsed.chunk_tokens + 0.5) / table.block_tokens)
        # An engine always computes the last token itself.
        indexed = np.minimum(blocks * table.block_tokens, parsed.prompt_tokens - 1.0)
        return Hits(indexed=indexed, trusted=indexed * table.trust)

    def close_pair_breaker(self, prefill: Instance, decode: Instance) -> None:
        """The pair worked."""
        if self.pair_breakers.succeed((prefill, decode)):
            self.pairs.set_open(prefill.row, decode.row, CLOSED)

    def expected_output(self, request: InferenceRequest) -> int:
        """Output tokens to expect of a request, over all its choices."""
        parsed = request.parsed
        length = self.lengths.expected(request.tenant, request.model, maximum=parsed.max_tokens)
        return length * parsed.n

    def degraded(self, row: int, *, now: float) -> tuple[str, ...]:
        """What a decision for an endpoint had to do without."""
        found = []
        if not now - self.table.observed_at[row] <= STALE_SECONDS:
            found.append("no-engine-signals")
        if self.speeds.source(self.table.instances[row]) == "prior":
            found.append("speed-from-class-prior")
        if math.isnan(self.table.capacity_tokens[row]):
            found.append("kv-capacity-unknown")
        return tuple(found)
