"""Everything a pool's router knows between two decisions, and how each event changes it.

One object per pool. It owns the table and the producers; policies read from it, only the router's
methods write to it. What is tied to an instance vanishes with the instance.
"""

import math

import numpy as np

from routing.core.document import EndpointSpec, PoolDocument
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Instance
from routing.pool.caches import Caches, Hits
from routing.pool.eligibility import EligibilityRules
from routing.pool.homes import Homes
from routing.pool.pairs import PairTable
from routing.producers import trust
from routing.producers.arrivals import Arrivals
from routing.producers.breakers import CLOSED, BreakerBook
from routing.producers.engine_load import STALE_SECONDS, EngineLoad
from routing.producers.findings import Findings
from routing.producers.leases import LeaseBook
from routing.producers.lengths import BytesPerToken, OutputLengths
from routing.producers.link_loads import LinkLoads
from routing.producers.peer_news import PeerNews
from routing.producers.peers import PeerLoads
from routing.producers.predictions import Predictions
from routing.producers.prefill_share import PrefillShare
from routing.producers.speeds import LearnedSpeeds
from routing.producers.tenants import TenantLimits
from routing.producers.transfers import Pair, TransferBook
from routing.producers.warm_up import WarmUp

__all__ = ["UNKNOWN_CAPACITY_TOKENS", "Hits", "Knowledge"]

HEARD_SECONDS = 0.1
"""Other routers are heard several times within it when all is well."""
SLOWER = "slower-than-class"
UNKNOWN_CAPACITY_TOKENS = 200_000
"""Index size for an endpoint that says nothing about its cache; about half an 80 GB card's."""


class Knowledge:
    """See the module. `install` swaps the document and keeps what is still true."""

    def __init__(self, document: PoolDocument, *, now: float) -> None:
        self.document = document
        self.findings = Findings()
        self.caches = Caches(document.prompt_identity, self.findings)
        self.index = self.caches.approximate
        self.leases = LeaseBook()
        self.lengths = OutputLengths()
        self.bytes_per_token = BytesPerToken(document.prompt_identity.bytes_per_token)
        self.speeds = LearnedSpeeds(document.speed_classes)
        self.prefill_share = PrefillShare()
        self.arrivals = Arrivals()
        self.homes = Homes()
        self.predictions = Predictions()
        self.warm_up = WarmUp()
        self.engines = EngineLoad()
        self.peers = PeerLoads()
        self.news = PeerNews()
        self.breakers: BreakerBook[Instance] = BreakerBook()
        self.pair_breakers: BreakerBook[tuple[Instance, Instance]] = BreakerBook()
        self.transfers = TransferBook(self._pair_changed)
        self.links = LinkLoads()
        self.warms = False
        """Somebody sends fresh decode endpoints a first prompt, so that they begin cold."""
        self.tenants = TenantLimits(document.tenants, keys=document.keys, now=now)
        self._next_expiry = now
        instances = [self._new_instance(spec, row) for row, spec in enumerate(document.endpoints)]
        self._rebuild(document, instances, now=now)
        self.peers.follow(self.table)
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
            self.caches.remove(gone)
        self._rebuild(document, instances, now=now)
        self.table.adopt(old_table, rows)
        self.peers.follow(self.table)
        self.pairs.adopt(old_pairs, rows)
        self.transfers.keep_alive_only()
        for pair in self.transfers.full():
            self._pair_changed(pair)
        self.speeds.install(self.table, document.speed_classes)
        for row, instance in enumerate(instances):
            if row not in rows:
                self.warm_up.begin(self.table, instance)
                self.cool(row)
        self._forget_the_gone(now=now)
        self.tenants.apply(document.tenants, keys=document.keys, now=now)
        self.bytes_per_token.first_guess = document.prompt_identity.bytes_per_token
        self._fit_index()
        if document.prompt_identity != old.prompt_identity:
            self._identify_anew()

    def _identify_anew(self) -> None:
        """Keys of another kind never match again."""
        self.homes.forget()
        self.caches.identify(self.document.prompt_identity, self.table)

    def _fit_index(self) -> None:
        """Give each instance its share of the index, which depends on how many there are."""
        capacities = self.table.capacity_tokens.tolist()
        for instance, tokens in zip(self.table.instances, capacities, strict=True):
            known_tokens = UNKNOWN_CAPACITY_TOKENS if math.isnan(tokens) else tokens
            self.index.set_capacity(instance.slot, self.blocks(known_tokens))

    def _forget_the_gone(self, *, now: float) -> None:
        self.engines.keep_alive_only()
        self.findings.keep_alive_only()
        self.caches.keep_alive_only()
        alive, classes = set(self.table.instances), set(self.document.speed_classes)
        self.predictions.keep_only(alive, classes)
        self.warm_up.keep_only(classes)
        self.breakers.keep_only(lambda instance: instance in alive)
        self.pair_breakers.keep_only(lambda pair: pair[0] in alive and pair[1] in alive)
        self.leases.forget_dead(self.table, now=now)

    def _new_instance(self, spec: EndpointSpec, row: int) -> Instance:
        tokens = spec.kv_capacity_tokens or UNKNOWN_CAPACITY_TOKENS
        slot = self.index.add(capacity_blocks=self.blocks(tokens))
        return Instance(spec, row, slot)

    def _rebuild(self, document: PoolDocument, instances: list[Instance], *, now: float) -> None:
        self.table = self.caches.table = EndpointTable(document, instances, now=now)
        self.arrivals.follow(self.table)
        self.rules = EligibilityRules(self.table, document.models)
        self.pairs = PairTable(document, self.table)

    def blocks(self, tokens: float, *, model: str | None = None) -> int:
        """Block keys that so many tokens of KV make."""
        identity = self.document.prompt_identity
        if identity.mode != "bytes":
            return int(tokens / identity.block_tokens)
        ratio = self.bytes_per_token.of(model or self.document.models[0].name)
        return int(tokens * ratio / identity.chunk_bytes)

    def forget(self) -> None:
        """Back to the class priors and to empty caches; leases and breakers stay."""
        self.forget_prefixes()
        self.lengths.forget()
        self.bytes_per_token.forget()
        self.pairs.forget()
        self.speeds.forget(self.table)
        self.predictions.forget()
        trust.forget(self.table)

    def forget_prefixes(self) -> None:
        """Believe all caches empty."""
        self.homes.forget()
        for instance in self.table.instances:
            self.caches.reset(instance)

    def refresh(self, *, now: float) -> None:
        """Let time pass: prompts that are probably computed, readings that are too old.

        The latter are looked at once a second.
        """
        self.leases.settle(self.table, now=now)
        if self.arrivals.is_due(now=now):
            multiple = self.peers.multiple(self.table)
            self.arrivals.refresh(self.table, now=now, multiple=multiple)
        if now >= self._next_expiry:
            self._next_expiry = now + 1.0
            self.engines.expire(self.table, now=now)
            self.caches.refresh(self.table, now=now)
            self.prefill_share.refresh(self.table, now=now)
            table = self.table
            usable = table.answers & table.is_ready & np.isneginf(table.open_until)
            self.homes.refresh(table, usable, now=now)
            self._look_for_slow_ones(now=now)

    def _look_for_slow_ones(self, *, now: float) -> None:
        for instance, comparison in self.speeds.compare(now=now).items():
            if comparison.is_slow:
                self.findings.tell(SLOWER, instance, comparison.sentence(), now=now)
            elif comparison.is_fine:
                self.findings.settle(SLOWER, instance)

    def hits(self, request: InferenceRequest) -> Hits:
        """Tokens of the prompt that each endpoint is believed to hold."""
        return self.caches.hits(request.parsed, self.table)

    def homes_of(self, request: InferenceRequest) -> tuple[tuple[int, ...], float]:
        """Rows on which the prompt's prefix lives, and its tokens; () and 0 where it has none."""
        return self.homes.of(request.parsed.block_keys)

    def doubt(self, *, now: float) -> float:
        """Share by which prices are uncertain because other routers decide at the same moment.

        A third of the tie share while they are heard all the time, up to three times it when one
        was silent for long: what it sent since is not in our table.
        """
        silence = self.peers.silence(now=now)
        if silence is None:
            return 0.0
        tie_share = self.document.policy.parameters.tie_share
        return tie_share * min(max(silence / HEARD_SECONDS, 1 / 3), 3.0)

    def cool(self, row: int) -> None:
        """A process began its life: it pulls nothing before its first prompt."""
        rules = self.document.disaggregation
        self.pairs.set_cold(row, is_cold=self.warms and rules.warm_up)

    def _pair_changed(self, pair: Pair) -> None:
        is_full = self.transfers.is_full(pair)
        self.pairs.set_full(pair[0].row, pair[1].row, is_full=is_full)

    def close_pair_breaker(self, prefill: Instance, decode: Instance) -> None:
        """The pair worked."""
        if self.pair_breakers.succeed((prefill, decode)):
            self.pairs.set_open(prefill.row, decode.row, CLOSED)

    def expected_output(self, request: InferenceRequest) -> int:
        """Output tokens to expect of a request, over all its choices."""
        parsed = request.parsed
        if not parsed.has_output:
            return 0
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
