"""Runs an engine model on the event loop: sleeps to the end of each step, then hands tokens out."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from routing.testbed.events import EventLog
from routing.testbed.scheduler import EngineModel
from routing.testbed.sequence import Sequence, State

log = logging.getLogger(__name__)

MAX_LAG_SECONDS = 0.25
"""A step that ends late by less does not delay the next: the machine is slow, not the engine."""
MAX_STEPS_AT_ONCE = 64

Publish = Callable[[list[dict[str, Any]]], None]
StartPull = Callable[[Sequence], None]
OnGone = Callable[[bool], None]
"""Told once when held blocks are free again: whether they were fetched."""


def _no_events(_: list[dict[str, Any]]) -> None:
    """Nobody subscribed."""


class EngineDriver:
    """One engine on one event loop. Times of the model are `loop.time()`."""

    def __init__(
        self,
        model: EngineModel,
        *,
        start_pull: StartPull,
        event_log: EventLog | None = None,
        publish: Publish = _no_events,
    ) -> None:
        self.model = model
        self.started_at = time.time()  # noqa: TID251 - the metrics page shows when the engine began
        self._loop = asyncio.get_running_loop()
        self._start_pull = start_pull
        self._log = event_log
        self._publish = publish
        self._timer: asyncio.Handle | None = None
        self._hold_timer: asyncio.TimerHandle | None = None
        self._step_ends = 0.0
        self._delayed: set[Sequence] = set()
        self._on_gone: dict[str, OnGone] = {}

    @property
    def now(self) -> float:
        """The clock that the model's times are on."""
        return self._loop.time()

    def submit(self, sequence: Sequence) -> None:
        """Queue a request after the time that a server needs to read and tokenise it."""
        self._delayed.add(sequence)
        self._loop.call_later(self.model.profile.request_overhead_seconds, self._enter, sequence)

    def abort(self, sequence: Sequence) -> None:
        """The client left."""
        sequence.silence()
        if sequence in self._delayed:
            self._delayed.discard(sequence)
            return
        self.model.abort(sequence, self._loop.time())
        self._wake()

    def pull_finished(self, sequence: Sequence, *, arrived: bool, fail: bool = False) -> None:
        """A transfer ended; with `fail` a lost one ends the request, else it is computed here."""
        if not arrived and fail and sequence.state is State.PULLING:
            self.model.stats.failed_transfers += 1
            self.model.fail(sequence, self._loop.time())
            sequence.listener(sequence)
        else:
            self.model.pull_finished(sequence, arrived=arrived)
        self._wake()

    def hold(
        self, request_id: str, sequence: Sequence, seconds: float, on_gone: OnGone | None = None
    ) -> list[int]:
        """Keep the blocks of a finished prefill for `seconds`; their ids."""
        if on_gone is not None:
            self._on_gone[request_id] = on_gone
        expires = self._loop.time() + seconds
        blocks = self.model.hold(request_id, sequence, expires=expires)
        if self._hold_timer is None:
            self._hold_timer = self._loop.call_at(expires, self._expire)
        return blocks

    def release(self, request_id: str) -> bool:
        """A decode engine has pulled the blocks."""
        released = self.model.release(request_id)
        self._tell_gone(request_id, fetched=released)
        self._wake()
        return released

    def drop(self, request_id: str) -> None:
        """Nobody will fetch the blocks, and nobody waits for that."""
        self._on_gone.pop(request_id, None)
        if request_id in self.model.held:
            self.release(request_id)

    def _tell_gone(self, request_id: str, *, fetched: bool) -> None:
        on_gone = self._on_gone.pop(request_id, None)
        if on_gone is not None:
            on_gone(fetched)

    def reset_cache(self) -> None:
        """Forget cached blocks. Subscribers hear of it with the next step, as from vLLM."""
        self.model.reset_cache()

    def stop(self) -> None:
        """Take no further step."""
        for timer in (self._timer, self._hold_timer):
            if timer is not None:
                timer.cancel()

    def _enter(self, sequence: Sequence) -> None:
        if sequence in self._delayed:
            self._delayed.discard(sequence)
            self.model.add(sequence)
            self._wake()

    def _wake(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_soon(self._begin_after_pause)

    def _begin_after_pause(self) -> None:
        self._timer = None
        self._begin(self._loop.time())

    def _begin(self, now: float) -> None:
        seconds = self.model.begin_step(now)
        for sequence in self.model.to_pull:
            self._start_pull(sequence)
        self.model.to_pull.clear()
        if seconds is not None:
            self._step_ends = now + seconds
            self._timer = self._loop.call_at(self._step_ends, self._end)

    def _end(self) -> None:
        """Finish the step, and those after it that should have ended by now as well."""
        for _ in range(MAX_STEPS_AT_ONCE):
            self._timer = None
            ended = self._step_ends
            for sequence in self.model.finish_step(ended):
                sequence.listener(sequence)
            self._publish_events()
            if self._timer is not None:
                self._timer.cancel()
            now = self._loop.time()
            self._begin(ended if now - ended < MAX_LAG_SECONDS else now)
            if self._timer is None or self._step_ends > now:
                return
            self._timer.cancel()
        self._timer = self._loop.call_soon(self._end)

    def _publish_events(self) -> None:
        if self._log is not None:
            batch = self._log.take()
            if batch:
                self._publish(batch)

    def _expire(self) -> None:
        now = self._loop.time()
        self.model.expire_holds(now)
        for request_id in [key for key in self._on_gone if key not in self.model.held]:
            self._tell_gone(request_id, fetched=False)
        held = self.model.held.values()
        following = min((hold.expires for hold in held), default=None)
        self._hold_timer = None
        if following is not None:
            self._hold_timer = self._loop.call_at(max(following, now + 0.01), self._expire)
        self._wake()
