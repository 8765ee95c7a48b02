"""A pool's router that writes down what it is told and asked. It decides as any other one.

For pools whose prompts are computed where they are decoded, without a queue in the router and
without limits of tenants: those calls are not on a tape.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import msgspec

from routing.core.decision import Decision
from routing.core.document import PoolDocument
from routing.core.kv_events import Batch, Cleared, Event, Removed, Stored
from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.core.table import Instance
from routing.pool.event_feed import EventFeed
from routing.pool.recording import Keep
from routing.pool.router import Outcome, PoolRouter
from routing.producers.breakers import FailureKind
from routing.producers.event_health import Action, EventHealth
from tests.benchmarks.tapes.tape import MICRO, Line, TapeError, micros


class Reel:
    """Collects lines. `at` notes one and returns its time as the router has to take it."""

    def __init__(self, began: float) -> None:
        self.began = self._last = micros(began)
        self.lines: list[Line] = []

    def at(self, now: float | None, kind: str, *rest: Any) -> float:
        """`now` is `None` for calls that have no time."""
        if now is not None:
            self._last = micros(now)
        self.lines.append((self._last, kind, list(rest)))
        return self._last / MICRO


class TapedRouter(PoolRouter):
    """See the module."""

    def __init__(self, document: PoolDocument, *, seed: int, now: float) -> None:
        """Raises TapeError for a pool that cannot be put on a tape."""
        if document.admission.queue_requests or document.tenants:
            raise TapeError("Queues and tenants' limits are not recorded. Leave them out.")
        if any(spec.role != "both" for spec in document.endpoints):
            raise TapeError("Pairs are not recorded. Use endpoints of the role 'both'.")
        self.reel = Reel(now)
        self.seed = seed
        super().__init__(document, seed=seed, now=self.reel.began / MICRO)
        self.caches.events = TapedFeed(self.caches.events, self.reel)
        self._decisions: dict[str, int] = {}
        self._prompts: dict[bytes, int] = {}

    def decide(
        self,
        request: InferenceRequest,
        *,
        now: float,
        exclude: frozenset[str] = frozenset(),
        policy: str | None = None,
        keep: Keep = None,
    ) -> Decision:
        """See `PoolRouter`."""
        now = micros(now) / MICRO
        decision = super().decide(request, now=now, exclude=exclude, policy=policy, keep=keep)
        self._decisions[decision.id] = len(self._decisions)
        refusal = decision.refusal
        picked = refusal.code if refusal else decision.destination
        self.reel.at(now, "decide", *self._told(request), sorted(exclude), policy, picked)
        return decision

    def _told(self, request: InferenceRequest) -> tuple[dict[str, Any], list[int] | None]:
        """A request, and its keys when they are new."""
        parsed = msgspec.structs.asdict(request.parsed)
        keys = parsed["block_keys"]
        name = keys.tobytes()
        is_new = name not in self._prompts
        parsed["block_keys"] = self._prompts.setdefault(name, len(self._prompts))
        facts = msgspec.structs.asdict(request) | {"parsed": parsed}
        return facts, keys.tolist() if is_new else None

    def begin(self, request: InferenceRequest, decision: Decision, *, now: float) -> Lease:
        """See `PoolRouter`."""
        now = micros(now) / MICRO
        lease = super().begin(request, decision, now=now)
        self.reel.at(now, "begin", self._decisions[decision.id], lease.number)
        return lease

    def first_token(self, lease: Lease, *, now: float) -> None:
        """See `PoolRouter`."""
        super().first_token(lease, now=self.reel.at(now, "first", lease.number))

    def tokens(self, lease: Lease, count: int, *, now: float) -> None:
        """See `PoolRouter`."""
        super().tokens(lease, count, now=self.reel.at(now, "tokens", lease.number, count))

    def end(
        self,
        lease: Lease,
        *,
        now: float,
        outcome: Outcome,
        prompt_tokens: int | None = None,
        cached_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """See `PoolRouter`."""
        counts = {
            "outcome": outcome,
            "prompt_tokens": prompt_tokens,
            "cached_tokens": cached_tokens,
            "completion_tokens": completion_tokens,
        }
        now = self.reel.at(now, "end", lease.number, counts)
        super().end(
            lease,
            now=now,
            outcome=outcome,
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            completion_tokens=completion_tokens,
        )

    def failed(
        self, endpoint_id: str, kind: FailureKind, *, now: float, prefill_id: str | None = None
    ) -> None:
        """See `PoolRouter`."""
        now = self.reel.at(now, "fail", endpoint_id, kind)
        super().failed(endpoint_id, kind, now=now, prefill_id=prefill_id)

    def observe(self, endpoint_id: str, signals: EngineSignals, *, now: float) -> None:
        """See `PoolRouter`."""
        known = {name: value for name, value in asdict(signals).items() if value is not None}
        super().observe(endpoint_id, signals, now=self.reel.at(now, "read", endpoint_id, known))

    def tokeniser_checked(self, endpoint_id: str, *, matches: bool, now: float) -> None:
        """See `PoolRouter`."""
        now = self.reel.at(now, "check", endpoint_id, matches)
        super().tokeniser_checked(endpoint_id, matches=matches, now=now)


class TapedFeed(EventFeed):
    """Notes what drivers of event streams call; all else, and the work, is the feed's own."""

    def __init__(self, feed: EventFeed, reel: Reel) -> None:
        """Takes the place of `feed`, of which nothing was followed yet."""
        self.__dict__.update(feed.__dict__)
        self._reel = reel
        self._is_inside = False

    def _note(self, method: str, instance: Instance, now: float | None, **rest: Any) -> float:
        return self._reel.at(now, "events", method, instance.spec.id, rest)

    def follow(self, instance: Instance, *, can_replay: bool) -> EventHealth:
        """See `EventFeed`."""
        self._note("follow", instance, None, can_replay=can_replay)
        super().follow(instance, can_replay=can_replay)

        def connected(now: float) -> float:
            return self._note("connect", instance, now)

        health = self.health[instance] = _TapedHealth(can_replay=can_replay)
        health.connected = connected
        return health

    def arrived(
        self, instance: Instance, sequence: int, *, now: float, has_waited: bool = False
    ) -> tuple[Action, ...]:
        """See `EventFeed`."""
        now = self._note("arrived", instance, now, sequence=sequence, has_waited=has_waited)
        return super().arrived(instance, sequence, now=now, has_waited=has_waited)

    def replayed(
        self, instance: Instance, sequence: int, *, now: float, sent_at: Callable[[], float]
    ) -> tuple[Action, ...]:
        """See `EventFeed`."""
        now = self._note("replayed", instance, now, sequence=sequence, sent_at=sent_at())
        return super().replayed(instance, sequence, now=now, sent_at=sent_at)

    def replay_ended(self, instance: Instance, *, now: float, is_answered: bool) -> None:
        """See `EventFeed`."""
        now = self._note("replay_ended", instance, now, is_answered=is_answered)
        super().replay_ended(instance, now=now, is_answered=is_answered)

    def take(
        self, instance: Instance, batch: Batch, *, now: float, part: list[Event] | None = None
    ) -> None:
        """See `EventFeed`."""
        events = batch.events if part is None else part
        now = self._note("take", instance, now, batch=_told_batch(batch, events))
        self._is_inside = True
        super().take(instance, batch, now=now, part=part)
        self._is_inside = False

    def take_part(self, instance: Instance, batch: Batch, events: Iterable[Event]) -> None:
        """See `EventFeed`."""
        if not self._is_inside:
            self._note("take_part", instance, None, batch=_told_batch(batch, events))
        super().take_part(instance, batch, events)

    def sweep(self, instance: Instance) -> None:
        """See `EventFeed`."""
        self._note("sweep", instance, None)
        super().sweep(instance)


class _TapedHealth(EventHealth):
    """Tells of connections, which drivers tell it directly."""

    connected: Callable[[float], float]

    def on_connect(self, *, now: float) -> bool:
        """See `EventHealth`."""
        return super().on_connect(now=self.connected(now))


def _told_batch(batch: Batch, events: Iterable[Event]) -> list[Any]:
    told = [[_name_of(event), *msgspec.structs.astuple(event)] for event in events]
    return [batch.sent_at, batch.rank, batch.unknown_events, told]


def _name_of(event: Event) -> str:
    """Decoders have classes of their own below these."""
    return next(kind.__name__ for kind in (Stored, Removed, Cleared) if isinstance(event, kind))
