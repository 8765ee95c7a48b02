"""Open attempts whose requests somebody else's proxy carries, until their end is known.

An attempt that was not heard of for its `quiet` seconds is ended as soon as the engine counts fewer
requests than this router does, which a request that is still running there would prevent; after
twice its `ttl` if the engine says nothing, and after ten times in any case. Of several at one
engine the one that is silent for most of its `ttl` goes first, and only as many as the engine
misses.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from routing.core.table import Instance
from routing.pool.router import PoolRouter
from routing.servers import attempt as attempts
from routing.servers import clock, queueing
from routing.servers.attempt import CLIENT_GONE, Attempt, Ending
from routing.servers.calls import Call
from routing.servers.errors import ApiError
from routing.servers.state import RouterState

UNHEARD_TTLS, MOST_TTLS = 2.0, 10.0

LOST = Ending(outcome="aborted", status=CLIENT_GONE, delivered=True)
"""Of an attempt whose carrier should have told its end."""
UNSEEN = Ending(outcome="ok", status=200, delivered=True, is_seen=False)
"""Of an attempt whose carrier tells nothing: most requests go well, and no token is counted."""


Missing = dict[Instance, int | None]
"""How many requests of this router an engine has not any more; `None` is unknown."""


@dataclass(slots=True, kw_only=True)
class Held:
    """One of them."""

    attempt: Attempt
    key_id: str
    quiet: float
    """Seconds of silence after which the engine's count is believed."""
    ttl: float
    """Seconds that it may be silent for."""
    when_silent: Ending
    refreshed_at: float
    """Monotonic time."""


class HeldAttempts:
    """All of one kind in one process, by name."""

    def __init__(self, state: RouterState, *, sweep_seconds: float) -> None:
        self._state = state
        self._sweep_seconds = sweep_seconds
        self._held: dict[str, Held] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        state.closers.append(self.stop)

    def __len__(self) -> int:
        return len(self._held)

    def get(self, name: str) -> Held | None:
        """One by its name."""
        return self._held.get(name)

    def hold(self, name: str, held: Held) -> None:
        """Keep the books of an attempt from here on."""
        self._held[name] = held
        if self._sweeper is None:
            self._sweep_later()

    def end(self, name: str, ending: Ending) -> None:
        """Account for one; again, it does nothing."""
        held = self._held.pop(name, None)
        if held is not None:
            attempts.finish(self._state, held.attempt, ending)
            queueing.leave(held.attempt.call)

    def end_oldest(self) -> None:
        """Conclude the end of the one that is held for longest, to make room."""
        name = next(iter(self._held), None)
        if name is not None:
            self.end(name, self._held[name].when_silent)

    def stop(self) -> None:
        """End what is open: the process that kept the books ends."""
        if self._sweeper:
            self._sweeper.cancel()
        for name, held in list(self._held.items()):
            self.end(name, held.when_silent)

    def _sweep_later(self) -> None:
        self._sweeper = asyncio.get_running_loop().call_later(self._sweep_seconds, self.sweep)

    def sweep(self) -> None:
        """Conclude which have ended."""
        self._sweeper = None
        try:
            for name, ending in list(self._ended(now=clock.monotonic())):
                self.end(name, ending)
        finally:
            if self._held:
                self._sweep_later()

    def _ended(self, *, now: float) -> Iterable[tuple[str, Ending]]:
        missing: dict[PoolRouter, Missing] = {}
        silent: list[tuple[float, str]] = []
        for name, one in self._held.items():
            silence = now - one.refreshed_at
            if silence > one.quiet:
                router = one.attempt.call.pool.router
                if router not in missing:
                    missing[router] = router.unseen.ended()
                if _may_have_ended(one.attempt, silence / one.ttl, missing[router]):
                    silent.append((silence / one.ttl, name))
        for times, name in sorted(silent, reverse=True):
            one = self._held[name]
            if _has_ended(one.attempt, times, missing[one.attempt.call.pool.router]):
                yield name, one.when_silent


async def begin(state: RouterState, call: Call) -> Attempt:
    """Let a call in and open its lease. Raises ApiError, which is accounted for already.

    Whoever gets the attempt must `attempts.finish` it and let the call `queueing.leave`.
    """
    # The body is the proxy's business; what a lease needs of it is in the request.
    kept = msgspec.structs.replace(call, body=b"")
    try:
        decision = await queueing.admit(state, kept)
        attempt = attempts.begin(state, kept, decision, number=1)
        if decision.refusal is not None:
            status = decision.refusal.status
            attempts.finish(
                state, attempt, Ending(outcome="refused", status=status, delivered=True)
            )
            raise ApiError.of(decision.refusal)
    except BaseException:
        queueing.leave(kept)
        raise
    return attempt


def _may_have_ended(attempt: Attempt, times: float, missing: Missing) -> bool:
    """See the module for the rule."""
    lease = attempt.lease
    if lease is None or not lease.is_open or times > MOST_TTLS:
        return True
    count = missing.get(lease.destination, 0)
    return times > UNHEARD_TTLS if count is None else count > 0


def _has_ended(attempt: Attempt, times: float, missing: Missing) -> bool:
    """The same, when others may have been ended meanwhile; this one is taken off what is missing.

    One that is silent for too long is not: whatever the engine misses, it is another one.
    """
    has_ended, lease = _may_have_ended(attempt, times, missing), attempt.lease
    if has_ended and lease is not None and times <= MOST_TTLS:
        count = missing.get(lease.destination)
        if count:
            missing[lease.destination] = count - 1
    return has_ended
