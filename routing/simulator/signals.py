"""What the router hears of the replicas: readings of their metrics with an age, cache events late.

Nothing here looks ahead: a reading is taken when it is due and told later.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

from routing.core.signals import EngineSignals
from routing.core.table import Instance
from routing.pool import turns
from routing.pool.router import PoolRouter
from routing.simulator.clock import SIGNAL, Clock
from routing.simulator.engine.replica import Replica
from routing.simulator.scenario import Surroundings

EVENT_BATCH_SECONDS = 0.05
"""How often a replica's cache events are collected into a batch."""
KEPT_BATCHES = 1000
"""That a replica can send again. vLLM keeps 10,000 of one step each, which is about as long."""


class Signals:
    """`start` it; `stop` ends the ticks, so that the clock can run out."""

    def __init__(
        self,
        clock: Clock,
        routers: Sequence[PoolRouter],
        replicas: Mapping[str, Replica],
        surroundings: Surroundings,
    ) -> None:
        self._clock, self._routers, self._replicas = clock, routers, replicas
        self._around = surroundings
        self._publishers = {name: _Publisher(replica) for name, replica in replicas.items()}
        self._waiting: dict[Instance, deque[_Batch]] = {}
        """Batches that wait for a replay, at each router (whose instances are its own)."""
        self._is_on = self._is_collecting = False
        self.deaf: set[str] = set()
        """Replicas whose next batch of events is lost."""
        if surroundings.has_events:
            self._follow()

    def start(self) -> None:
        """Take readings and events from now on."""
        if self._is_on:
            return
        self._is_on = True
        for name in self._replicas:
            first = turns.share_of(name) * self._around.scrape_seconds
            self._clock.after(first, partial(self._scrape, name), priority=SIGNAL)
        if self._around.has_events:
            self._clock.after(EVENT_BATCH_SECONDS, self._collect, priority=SIGNAL)

    def stop(self) -> None:
        """Nobody asks any more."""
        self._is_on = False

    def meet(self, routers: Sequence[PoolRouter], now: float) -> None:
        """Other routers listen from now on; what was under way to those before is lost."""
        self._routers = routers
        self._waiting.clear()
        if self._around.has_events:
            self._follow()
            for router in routers:
                for name, instance in self._instances(router):
                    if router.caches.events.health[instance].on_connect(now=now):
                        self._replay(router, name, instance)

    def born(self, name: str) -> None:
        """A replica is a new process: it counts its batches anew, and has nothing to send again."""
        publisher = self._publishers[name]
        publisher.kept.clear()
        publisher.sequence = 0

    # Readings.

    def _scrape(self, name: str, now: float) -> None:
        if not self._is_on:
            return
        replica = self._replicas[name]
        if replica.is_up:
            self._tell(name, _reading(replica))
        self._clock.after(self._around.scrape_seconds, partial(self._scrape, name), priority=SIGNAL)

    def _tell(self, name: str, reading: EngineSignals) -> None:
        routers = self._routers

        def tell(now: float) -> None:
            for router in routers:
                router.observe(name, reading, now=now)

        self._clock.after(self._around.scrape_delay_seconds, tell, priority=SIGNAL)

    # Cache events.

    def _instances(self, router: PoolRouter) -> list[tuple[str, Instance]]:
        found = ((name, router.caches.instance(name)) for name in self._replicas)
        return [(name, instance) for name, instance in found if instance is not None]

    def _follow(self) -> None:
        for router in self._routers:
            for _, instance in self._instances(router):
                router.caches.events.follow(instance, can_replay=self._around.events_can_replay)

    def _collect(self, now: float) -> None:
        for name, publisher in self._publishers.items():
            batch = publisher.batch(now)
            if batch is None:
                continue
            if name in self.deaf:
                self.deaf.discard(name)
            else:
                self._send(name, batch)
        if self._is_on:
            self._clock.after(EVENT_BATCH_SECONDS, self._collect, priority=SIGNAL)

    def _send(self, name: str, batch: "_Batch") -> None:
        routers = self._routers

        def arrive(now: float) -> None:
            if routers is not self._routers:
                return
            for router in routers:
                instance = router.caches.instance(name)
                if instance is not None:
                    self._offer(router, name, instance, batch, now)

        self._clock.after(self._around.event_delay_seconds, arrive, priority=SIGNAL)

    def _offer(
        self,
        router: PoolRouter,
        name: str,
        instance: Instance,
        batch: "_Batch",
        now: float,
        *,
        has_waited: bool = False,
    ) -> None:
        waiting = self._waiting.setdefault(instance, deque(maxlen=KEPT_BATCHES))
        actions = router.caches.events.arrived(
            instance, batch.sequence, now=now, has_waited=has_waited
        )
        if "clear" in actions:
            waiting.clear()
        if "apply" in actions:
            _apply(router, instance, batch, now)
        elif "replay" in actions or "wait" in actions:
            waiting.append(batch)
        if "replay" in actions:
            self._replay(router, name, instance)

    def _replay(self, router: PoolRouter, name: str, instance: Instance) -> None:
        """Ask, and get all that is kept from a number on: a way there and a way back."""
        start = router.caches.events.health[instance].replay_from

        def answer(asked_at: float) -> None:
            kept = self._publishers[name].kept
            batches = [batch for batch in kept if batch.sequence >= start]
            self._clock.after(
                self._around.event_delay_seconds,
                lambda now: self._take_replay(router, name, instance, batches, now),
                priority=SIGNAL,
            )

        self._clock.after(self._around.event_delay_seconds, answer, priority=SIGNAL)

    def _take_replay(
        self,
        router: PoolRouter,
        name: str,
        instance: Instance,
        batches: "list[_Batch]",
        now: float,
    ) -> None:
        if router not in self._routers:
            return
        feed = router.caches.events
        for batch in batches:
            if "apply" in feed.replayed(
                instance, batch.sequence, now=now, sent_at=partial(getattr, batch, "sent_at")
            ):
                _apply(router, instance, batch, now)
        feed.replay_ended(instance, now=now, is_answered=True)
        for batch in self._waiting.pop(instance, ()):
            self._offer(router, name, instance, batch, now, has_waited=True)


def _apply(router: PoolRouter, instance: Instance, batch: "_Batch", now: float) -> None:
    events = router.caches.events
    events.take_keys(instance, removed=batch.removed, stored=batch.stored, now=now)
    events.health[instance].last_sent_at = batch.sent_at


class _Batch:
    """Blocks that came and went in one replica, under a number."""

    __slots__ = ("removed", "sent_at", "sequence", "stored")

    def __init__(
        self, sequence: int, sent_at: float, stored: list[int], removed: list[int]
    ) -> None:
        self.sequence, self.sent_at = sequence, sent_at
        self.stored, self.removed = stored, removed


class _Publisher:
    """One replica's events."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.sequence = 0
        self.kept: deque[_Batch] = deque(maxlen=KEPT_BATCHES)

    def batch(self, now: float) -> _Batch | None:
        """What happened since the last one."""
        cache = self._replica.cache
        if not cache.stored and not cache.removed:
            return None
        batch = _Batch(self.sequence, now, cache.stored, cache.removed)
        cache.stored, cache.removed = [], []
        self.sequence += 1
        self.kept.append(batch)
        return batch


def _reading(replica: Replica) -> EngineSignals:
    return EngineSignals(
        running=replica.running,
        waiting=len(replica.waiting) + len(replica.pulling),
        kv_usage=replica.kv_usage,
        kv_capacity_tokens=replica.profile.kv_tokens,
        prefix_queries_total=float(replica.prompt_tokens),
        prefix_hits_total=float(replica.hit_tokens),
        process_start=replica.started_at,
    )
