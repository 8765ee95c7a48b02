"""What the endpoints of a pool have in their caches: events where they come, else beliefs.

An instance whose events are followed and whole is known exactly; beliefs from own decisions are
added for requests in flight only, so that a burst of siblings stays together. Where events are not
whole, or there are none, a computed prompt is believed to stay until its share of the cache is
full. Both kinds are bits of one table (`BlockMasks`), so a match is one walk.
"""

import math
from collections import OrderedDict, deque
from typing import Any

import msgspec
import numpy as np

from routing.core.block_masks import BlockMasks, Match, short_keys
from routing.core.document import PromptIdentity
from routing.core.lease import Lease
from routing.core.openai import ParsedBody
from routing.core.prompt import BlockKeys
from routing.core.signals import EngineSignals
from routing.core.table import EndpointTable, Flags, Floats, Instance
from routing.pool import drift
from routing.pool.event_feed import EventFeed
from routing.producers import trust
from routing.producers.findings import Findings
from routing.producers.hit_audit import HitAudit
from routing.producers.prefix_index import PrefixIndex
from routing.producers.tier_loads import TierLoads

PEERS_HOPE_SECONDS = 20.0
"""How long a prompt that another router has sent counts where events will tell of it."""
MOST_PEERS_HOPES = 20_000
MAX_GROUPS = 512
MAX_GROUP_KEYS = 4096


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """Prompt tokens in each endpoint's cache, shape `(n,)`, below the prompt's length."""

    indexed: Floats
    """What the index says."""
    trusted: Floats
    """The same, times trust."""
    load_seconds: Floats | None = None
    """Time to load what is not in the device's memory; `None` where all of it is."""
    is_exact: Flags | None = None
    """Rows whose blocks come from the engine's own events; `None` when no row's do."""


class _Group(msgspec.Struct):
    """Prompts with the same first block."""

    keys: list[int]
    chunk_tokens: float
    seen_at: float
    requests: int = 0


class Caches:
    """Hangs on `Knowledge`; drivers of event streams call `events`."""

    table: EndpointTable
    """The pool's, see `Knowledge`."""

    def __init__(self, identity: PromptIdentity, findings: Findings) -> None:
        self.findings = findings
        self.blocks = BlockMasks()
        self.approximate = PrefixIndex(self.blocks)
        self.events = EventFeed(self.blocks, self.approximate, identity)
        self.audits: dict[Instance, HitAudit] = {}
        self.tiers = TierLoads()
        self._event_trust: Floats | None = None
        """Per row; `None` while all event streams are believed."""
        self._exact_rows: Flags | None = None
        self._peers_hopes: deque[tuple[float, int, list[int], int]] = deque()
        self._groups: OrderedDict[int, _Group] = OrderedDict()
        self._last_keys: tuple[BlockKeys, list[int]] | None = None

    def instance(self, endpoint_id: str) -> Instance | None:
        """The life of an endpoint that the document in force names."""
        row = self.table.row_of.get(endpoint_id)
        return None if row is None else self.table.instances[row]

    # What a decision asks.

    def hits(self, parsed: ParsedBody, table: EndpointTable) -> Hits:
        """Tokens of the prompt that each endpoint is believed to hold."""
        match, indexed = self._indexed(self._keys_of(parsed), parsed, table)
        trusted = indexed * table.trust
        if self._event_trust is not None and len(self._event_trust) == len(trusted):
            trusted *= self._event_trust
        told = self._exact_rows if parsed.has_exact_tokens else None
        hits = Hits(indexed=indexed, trusted=trusted, is_exact=told)
        if match.slower is None:
            return hits
        return self._with_tiers(match.slower, parsed, table, hits)

    def _keys_of(self, parsed: ParsedBody) -> list[int]:
        """Keys as the table has them; a request that is sent asks again at once."""
        known = self._last_keys
        if known is None or known[0] is not parsed.block_keys:
            keys = parsed.block_keys
            known = self._last_keys = (keys, short_keys(keys))
        return known[1]

    def _indexed(
        self, keys: list[int], parsed: ParsedBody, table: EndpointTable
    ) -> tuple[Match, Floats]:
        chunk, size, last = parsed.chunk_tokens, table.block_size, parsed.prompt_tokens - 1.0
        # An engine always computes the last token itself, and so the block that it is in.
        most = last if parsed.has_exact_tokens else math.inf
        if size is None or self.blocks.has_tiers:
            match = self.blocks.match(keys)
            tokens = np.minimum(match.depths[table.slots] * chunk + 0.5, most)
            blocks = np.floor(tokens / table.block_tokens)
            return match, np.minimum(blocks * table.block_tokens, last)

        def worth(depth: int) -> float:
            # Engines reuse whole blocks of their own size; half a token forgives rounding.
            return min(math.floor(min(depth * chunk + 0.5, most) / size) * size, last)

        match = self.blocks.match(keys, worth=worth)
        if table.has_slots_in_order and len(match.depths) == len(table):
            return match, match.depths
        return match, match.depths[table.slots]

    def _with_tiers(
        self, slower: Floats, parsed: ParsedBody, table: EndpointTable, hits: Hits
    ) -> Hits:
        """Tokens in slower memory cost their load; where that is unknown they are no hit."""
        tokens = slower[:, table.slots] * parsed.chunk_tokens
        seconds = self.tiers.seconds_per_token(table, self.events.planes)
        unknown = np.isnan(seconds)
        lost = np.where(unknown, tokens, 0.0).sum(axis=0)
        load = np.where(unknown, 0.0, tokens * seconds).sum(axis=0)
        share = np.divide(
            np.maximum(hits.indexed - lost, 0.0),
            hits.indexed,
            out=np.ones(len(table)),
            where=hits.indexed > 0,
        )
        return Hits(
            indexed=hits.indexed * share,
            trusted=hits.trusted * share,
            load_seconds=load,
            is_exact=hits.is_exact,
        )

    # What requests do.

    def hope(self, instance: Instance, parsed: ParsedBody, *, lease: int, now: float) -> list[int]:
        """A prompt was sent; returns its keys as this object names them."""
        keys = self._keys_of(parsed)
        if keys:
            self._note_group(keys, parsed, now=now)
        if self.blocks.has_tiers:
            slower = self.blocks.match(keys).slower
            if slower is not None:
                self.tiers.begin(lease, slower[:, instance.slot] * parsed.chunk_tokens)
        self.approximate.insert(instance.slot, keys, lease=lease)
        return keys

    def confirm(self, instance: Instance, parsed: ParsedBody) -> None:
        """It was computed there; where events tell the rest, the hope ends with the request."""
        if not self._is_told(instance, parsed):
            self.approximate.confirm(instance.slot, self._keys_of(parsed))

    def withdraw(self, instance: Instance, parsed: ParsedBody, *, lease: int) -> list[int]:
        """It was not computed there; returns its keys."""
        keys = self._keys_of(parsed)
        self.approximate.withdraw(instance.slot, keys, lease=lease)
        return keys

    def leave(self, lease: Lease) -> None:
        """The request is over: what only it hoped for is left to the events."""
        if not self.events.health:
            return
        instance, parsed = lease.prompt_instance, lease.request.parsed
        if instance.is_alive and self._is_told(instance, parsed):
            self.withdraw(instance, parsed, lease=lease.number)

    def hear_hope(self, instance: Instance, keys: list[int], *, lease: int, now: float) -> None:
        """Another router has sent a prompt."""
        self.approximate.insert(instance.slot, keys, lease=lease)
        if self.events.is_exact(instance):
            if len(self._peers_hopes) == MOST_PEERS_HOPES:
                self._end_oldest_hope()
            self._peers_hopes.append((now + PEERS_HOPE_SECONDS, instance.slot, keys, lease))

    def _end_oldest_hope(self) -> None:
        _, slot, keys, lease = self._peers_hopes.popleft()
        self.approximate.withdraw(slot, keys, lease=lease)

    def _is_told(self, instance: Instance, parsed: ParsedBody) -> bool:
        return parsed.has_exact_tokens and self.events.is_exact(instance)

    def occupy(self, instance: Instance, blocks: int) -> None:
        """Output takes room that only events would tell of."""
        if not self.events.is_exact(instance):
            self.approximate.occupy(instance.slot, blocks)

    def learned(
        self,
        table: EndpointTable,
        instance: Instance,
        lease: Lease,
        *,
        cached_tokens: int | None,
        seconds: float | None,
        now: float,
    ) -> None:
        """A prompt was computed in so many seconds; `cached_tokens` where the engine gave them."""
        parsed, predicted = lease.request.parsed, lease.decision.predicted.indexed_tokens
        trust.observe_hit(
            table, instance.row, predicted_tokens=predicted, cached_tokens=cached_tokens
        )
        if not instance.is_alive or instance.row < 0:
            return
        audit = self.audits.get(instance)
        if audit is None:
            audit = self.audits[instance] = HitAudit()
        audit.observe(
            prompt_tokens=parsed.prompt_tokens,
            predicted_tokens=predicted,
            cached_tokens=cached_tokens,
        )
        if self.blocks.has_tiers and cached_tokens is not None:
            self._learn_load(table, instance, lease, cached_tokens, seconds)
        health = self.events.health.get(instance)
        if health is None or (cached_tokens is None and not parsed.has_exact_tokens):
            return
        stored = (
            lease.work_tokens if cached_tokens is None else parsed.prompt_tokens - cached_tokens
        )
        if stored >= 2 * table.block_tokens[instance.row]:
            health.on_prompt(now=now)

    def _learn_load(
        self,
        table: EndpointTable,
        instance: Instance,
        lease: Lease,
        cached_tokens: int,
        seconds: float | None,
    ) -> None:
        """What a prompt took beyond its queue and its own prefill is the load of its hit."""
        parsed, row = lease.request.parsed, instance.row
        ahead = lease.at_begin.get("prefill_tokens", 0.0)
        computed = max(0, parsed.prompt_tokens - cached_tokens) + ahead
        spent = computed * table.prefill_seconds_per_token[row] + table.step_seconds[row]
        held = float(self._depth(instance, parsed))
        self.tiers.end(
            lease.number,
            instance,
            seconds=None if seconds is None else seconds - float(spent),
            hit_share=min(1.0, cached_tokens / held) if held else 0.0,
        )

    def _depth(self, instance: Instance, parsed: ParsedBody) -> float:
        """Tokens of a prompt that an instance holds in any memory."""
        depths = self.blocks.match(self._keys_of(parsed)).depths
        return float(depths[instance.slot] * parsed.chunk_tokens)

    # What engines show on their metrics pages.

    def read(self, table: EndpointTable, instance: Instance, signals: EngineSignals) -> None:
        """Counters stand in for usage that lacks `cached_tokens`."""
        audit = self.audits.get(instance)
        window = None if audit is None else audit.read(signals)
        if window is not None:
            predicted, found = window
            for _ in range(3):
                trust.observe_hit(
                    table,
                    instance.row,
                    predicted_tokens=round(predicted),
                    cached_tokens=round(found),
                )

    def restarted(self, instance: Instance, *, now: float) -> None:
        """The engine's process is another one: its cache is empty."""
        if not self.events.restarted(instance, now=now):
            # Its events said so before, and what they said since is true.
            return
        self.audits.pop(instance, None)
        self.approximate.clear(instance.slot)

    def reset(self, instance: Instance) -> None:
        """We emptied the engine's cache ourselves; its own event may come much later."""
        self.approximate.clear(instance.slot)
        self.events.emptied(instance)

    # Time and documents.

    def refresh(self, table: EndpointTable, *, now: float) -> None:
        """Once a second: fading trust, peers' hopes that events have overtaken."""
        hopes = self._peers_hopes
        while hopes and hopes[0][0] <= now:
            self._end_oldest_hope()
        self.look_for_drift(now=now)
        self._event_trust = self.events.factors(table, now=now)
        self._exact_rows = self.events.exact_rows(table)

    def look_for_drift(self, *, now: float) -> None:
        """Findings where predictions and engines differ, or a stream is not to be believed."""
        for instance, audit in self.audits.items():
            health, publisher = (
                self.events.health.get(instance),
                self.events.exact.publisher(instance.slot),
            )
            if not instance.is_alive:
                continue
            seen = drift.Seen(
                audit=audit,
                health=health,
                publisher=publisher,
                router_block_tokens=self.events.exact.block_tokens,
                stated_block_tokens=instance.spec.block_size_tokens,
            )
            message = drift.message(instance.spec.id, seen)
            if message is None:
                self.findings.settle(drift.CODE, instance)
            else:
                self.findings.tell(drift.CODE, instance, message, now=now)
        for instance, health in self.events.health.items():
            if not instance.is_alive:
                continue
            if health.state == "doubtful":
                message = drift.doubt(instance.spec.id, health, now=now)
                self.findings.tell(drift.EVENTS_CODE, instance, message, now=now)
            else:
                self.findings.settle(drift.EVENTS_CODE, instance)

    def keep_alive_only(self) -> None:
        """Forget instances that are gone."""
        self.events.keep_alive_only()
        self.audits = {key: audit for key, audit in self.audits.items() if key.is_alive}
        self.tiers.keep_alive_only()
        self._event_trust = self._exact_rows = None

    def remove(self, instance: Instance) -> None:
        """An instance is gone; its slot may be used again."""
        self.events.unfollow(instance)
        self.approximate.remove(instance.slot)

    def identify(self, identity: PromptIdentity, table: EndpointTable) -> None:
        """Prompts have other keys from here on: nothing known matches them any more."""
        self.events.identify(identity)
        for instance in table.instances:
            self.approximate.clear(instance.slot)
        self.audits.clear()
        self._groups.clear()

    # What people ask.

    def _note_group(self, keys: list[int], parsed: ParsedBody, *, now: float) -> None:
        group = self._groups.pop(keys[0], None)
        if group is None:
            group = _Group(keys[:MAX_GROUP_KEYS], parsed.chunk_tokens, now)
            if len(self._groups) >= MAX_GROUPS:
                self._groups.popitem(last=False)
        self._groups[keys[0]] = group
        group.keys, group.seen_at = keys[:MAX_GROUP_KEYS], now
        group.requests += 1

    def rates(self, instance: Instance) -> dict[str, float] | None:
        """Predicted and real share of prompt tokens in the cache; `None` before any was seen."""
        audit = self.audits.get(instance)
        if audit is None or audit.predicted_rate is None or audit.real_rate is None:
            return None
        return {
            "predicted_rate": round(audit.predicted_rate, 4),
            "real_rate": round(audit.real_rate, 4),
            "requests": audit.requests,
        }

    def prefixes(self, instance: Instance, *, count: int, now: float) -> list[dict[str, Any]]:
        """Groups of prompts, by their first block, of which an instance is believed to hold most.

        Keys and sizes of the last prompt seen of each; never any text.
        """
        found: list[dict[str, Any]] = []
        for first, group in self._groups.items():
            depth = float(self.blocks.match(group.keys).depths[instance.slot])
            if depth:
                found.append(
                    {
                        "prefix": f"{first:015x}",
                        "held_tokens": round(depth * group.chunk_tokens),
                        "prompt_tokens": round(len(group.keys) * group.chunk_tokens),
                        "requests": group.requests,
                        "age_seconds": round(now - group.seen_at, 3),
                    }
                )
        found.sort(key=lambda line: line["held_tokens"], reverse=True)
        return found[:count]
