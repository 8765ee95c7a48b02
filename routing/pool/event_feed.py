"""Event streams of a pool's instances: their health, and what they do to the exact index.

A driver per stream hands over sequence numbers first (`arrived`, `replayed`) and decoded batches
when it is told to apply them (`take`).
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from routing.core.block_masks import BlockMasks
from routing.core.document import PromptIdentity
from routing.core.kv_events import Batch, Cleared, Event
from routing.core.table import EndpointTable, Flags, Floats, Instance
from routing.producers.event_health import Action, EventHealth
from routing.producers.exact_index import ExactIndex
from routing.producers.prefix_index import PrefixIndex

MAX_EVENT_BLOCKS = 4_000_000
"""Blocks known from events, over all instances: about half a gigabyte."""
RESTART_SECONDS = 30.0
"""A new life that the events told is the same as one that the metrics show so much later."""


class EventFeed:
    """See the module."""

    def __init__(
        self, blocks: BlockMasks, approximate: PrefixIndex, identity: PromptIdentity
    ) -> None:
        self._blocks, self._approximate = blocks, approximate
        self.exact = self._index(identity)
        self.generation = 0
        """Changes when everything known from events was forgotten: follow anew."""
        self.health: dict[Instance, EventHealth] = {}
        self._new_life_at: dict[Instance, float] = {}
        self._ranks: dict[Instance, int] = {}
        """Rank of an instance's first batch, where the document states none."""

    def _index(self, identity: PromptIdentity) -> ExactIndex:
        return ExactIndex(
            self._blocks, block_tokens=identity.block_tokens, max_blocks=MAX_EVENT_BLOCKS
        )

    def planes(self, slot: int) -> dict[str, int]:
        """Media of an instance other than the device, with their plane."""
        publisher = self.exact.publisher(slot)
        return {} if publisher is None else publisher.planes

    def is_exact(self, instance: Instance) -> bool:
        """What the index says of an instance is all that it holds."""
        health = self.health.get(instance)
        return health is not None and health.is_exact

    # What drivers call.

    def follow(self, instance: Instance, *, can_replay: bool) -> EventHealth:
        """Events of an instance will come from here on."""
        health = self.health[instance] = EventHealth(can_replay=can_replay)
        self.exact.open(instance.slot)
        return health

    def unfollow(self, instance: Instance) -> None:
        """They will not."""
        if self.health.pop(instance, None) is not None:
            self.exact.close(instance.slot)
            self._new_life_at.pop(instance, None)
            self._ranks.pop(instance, None)

    def arrived(
        self, instance: Instance, sequence: int, *, now: float, has_waited: bool = False
    ) -> tuple[Action, ...]:
        """A batch came; for the caller is left `apply` (see `take`), `replay` or `wait`.

        `clear` is done here, and told so that the caller throws away what waits.
        """
        health = self.health.get(instance)
        if health is None:
            return ("drop",)
        actions = health.on_batch(sequence, now=now, has_waited=has_waited)
        return self._cleared(instance, actions, now)

    def replayed(
        self, instance: Instance, sequence: int, *, now: float, sent_at: Callable[[], float]
    ) -> tuple[Action, ...]:
        """A batch of a replay; for the caller is left `apply`, see `arrived`."""
        health = self.health.get(instance)
        if health is None:
            return ("drop",)
        return self._cleared(instance, health.on_replayed(sequence, now=now, sent_at=sent_at), now)

    def _cleared(
        self, instance: Instance, actions: tuple[Action, ...], now: float
    ) -> tuple[Action, ...]:
        if "clear" in actions:
            self._new_life_at[instance] = now
            self.exact.clear(instance.slot)
            self._approximate.clear(instance.slot)
        return actions

    def replay_ended(self, instance: Instance, *, now: float, is_answered: bool) -> None:
        """The replay is over, or nobody answers it; what waited is to be offered again."""
        health = self.health.get(instance)
        if health is not None:
            actions = health.on_replay_end(now=now, is_answered=is_answered)
            self._cleared(instance, actions, now)

    def take(
        self, instance: Instance, batch: Batch, *, now: float, part: list[Event] | None = None
    ) -> None:
        """Apply a decoded batch, or the last part of it (see `take_part`)."""
        self.take_part(instance, batch, batch.events if part is None else part)
        health = self.health.get(instance)
        if health is None:
            return
        health.last_sent_at = batch.sent_at
        if batch.events and isinstance(batch.events[-1], Cleared):
            health.on_cleared()
        if batch.unknown_events:
            health.trouble("unknown-event", now=now)

    def take_part(self, instance: Instance, batch: Batch, events: Iterable[Event]) -> None:
        """Apply some events of a batch: a driver takes large batches in parts."""
        health, publisher = self.health.get(instance), self.exact.publisher(instance.slot)
        if health is None or publisher is None or not self._is_of_rank(instance, batch):
            return
        counts = publisher.counts
        stored, orphans = counts.stored_blocks, counts.unknown_parents
        wrong = counts.misshaped + counts.disagreements
        self.exact.apply(instance.slot, events)
        health.on_blocks(
            stored=counts.stored_blocks - stored, orphans=counts.unknown_parents - orphans
        )
        if counts.misshaped + counts.disagreements > wrong:
            health.trouble("undecodable", now=health.last_event_at or 0.0)

    def take_keys(
        self, instance: Instance, *, stored: list[int], removed: list[int], now: float
    ) -> None:
        """Apply a batch that names blocks by the keys of prompts; removals made room, come first.

        Engines name blocks by hashes of their own; a simulated one needs no second name.
        """
        health = self.health.get(instance)
        if health is None:
            return
        self.exact.drop_keys(instance.slot, removed)
        self.exact.hold_keys(instance.slot, stored)
        health.last_sent_at = now
        health.on_blocks(stored=len(stored), orphans=0)

    def _is_of_rank(self, instance: Instance, batch: Batch) -> bool:
        """Batches of other ranks are not this row's."""
        if batch.rank is None:
            return True
        stated = instance.spec.data_parallel_rank
        rank = self._ranks.setdefault(instance, batch.rank) if stated is None else stated
        return rank == batch.rank

    def undecodable(self, instance: Instance, *, now: float) -> None:
        """A payload could not be read."""
        health = self.health.get(instance)
        if health is not None:
            health.trouble("undecodable", now=now)

    def overflowed(self, instance: Instance, *, now: float) -> None:
        """Batches came faster than they could be kept, and one was dropped."""
        health = self.health.get(instance)
        if health is not None:
            health.trouble("overflow", now=now)

    def is_sweeping(self, instance: Instance) -> bool:
        """A large index is being cleaned of it: call `sweep` before anything is applied."""
        return self.exact.is_sweeping(instance.slot)

    def sweep(self, instance: Instance) -> None:
        """One short step of cleaning."""
        self.exact.sweep(instance.slot)

    # What others notice.

    def restarted(self, instance: Instance, *, now: float) -> bool:
        """The engine's process is another one; false when its events said so before."""
        health = self.health.get(instance)
        if health is None:
            return True
        if now - self._new_life_at.get(instance, -math.inf) < RESTART_SECONDS:
            return False
        health.on_restart()
        self.exact.clear(instance.slot)
        return True

    def emptied(self, instance: Instance) -> None:
        """Its cache was emptied by us."""
        self.exact.clear(instance.slot)
        health = self.health.get(instance)
        if health is not None:
            health.on_cleared()

    def factors(self, table: EndpointTable, *, now: float) -> Floats | None:
        """How far hits of each row are believed, `None`: wholly. Drops what is hardly believed."""
        factors: Floats | None = None
        for instance, health in self.health.items():
            if health.state != "doubtful" or not instance.is_alive:
                continue
            if health.is_spent(now=now):
                self.exact.clear(instance.slot)
                health.on_dropped()
                continue
            if factors is None:
                factors = np.ones(len(table))
            factors[instance.row] = health.trust(now=now)
        return factors

    def exact_rows(self, table: EndpointTable) -> Flags | None:
        """Rows of which all is known, `None` where there are none."""
        rows = [key.row for key, health in self.health.items() if health.is_exact and key.is_alive]
        if not rows:
            return None
        flags: Flags = np.zeros(len(table), dtype=np.bool_)
        flags[rows] = True
        return flags

    def keep_alive_only(self) -> None:
        """Forget instances that are gone."""
        for instance in [instance for instance in self.health if not instance.is_alive]:
            self.unfollow(instance)

    def identify(self, identity: PromptIdentity) -> None:
        """Prompts have other keys from here on."""
        for instance in list(self.health):
            self.unfollow(instance)
        self.exact = self._index(identity)
        self.generation += 1

    def describe(self, instance: Instance, *, now: float) -> dict[str, Any] | None:
        """One stream for people; `None` when none is followed."""
        health, publisher = self.health.get(instance), self.exact.publisher(instance.slot)
        if health is None or publisher is None:
            return None
        age = None if health.last_event_at is None else round(now - health.last_event_at, 3)
        counts = publisher.counts
        return {
            "state": health.state,
            "last_sequence": health.last_sequence,
            "age_seconds": age,
            "trust": round(health.trust(now=now), 4),
            "blocks": publisher.blocks,
            "waiting_blocks": publisher.waiting.blocks,
            "engine_block_tokens": publisher.engine_block_tokens,
            "reasons": dict(health.counts),
            "stored_blocks": counts.stored_blocks,
            "removed_blocks": counts.removed_blocks,
            "cleared": counts.cleared,
            "unknown_parents": counts.unknown_parents,
            "given_up": counts.given_up,
            "unknown_removals": counts.unknown_removals,
            "misshaped": counts.misshaped,
            "uncredited": counts.uncredited,
            "disagreements": counts.disagreements,
        }
