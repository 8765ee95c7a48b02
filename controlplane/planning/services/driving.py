"""The worker's loop of a live race: simulate a little, show it, look at what people want.

Virtual time runs `PACE` times as fast as the clock while the worker keeps up. It spends at most
`BUSY_SHARE` of each tick; a heavier load makes virtual time slower and never the page late.
"""

import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta

from django.utils import timezone

from controlplane.operations import services as operations
from controlplane.operations.models import Operation
from controlplane.planning import board
from controlplane.planning.models import LiveRace
from routing.simulator.live.duel import Duel

PACE = 4.0
"""Virtual seconds per second: a difference shows within half a minute, at 0.3 of a core."""
TICK_SECONDS = 0.5
BUSY_SHARE = 0.8
UNWATCHED_AFTER = timedelta(minutes=10)
LONGEST_SECONDS = 1800
CLAIM_SECONDS = 15
"""A worker that was not heard for so long is gone."""
RENEW_SECONDS = 3.0
PACE_TICKS = 10
"""Over which the pace is told."""


class Driver:
    """One race in this process. `clock` and `pause` are arguments so that tests need no waiting."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._pause = clock, pause
        self._moves: deque[tuple[float, float]] = deque(maxlen=PACE_TICKS)
        """`(clock, virtual time)` at the ends of ticks."""

    def drive(self, race: LiveRace, operation: Operation) -> str | None:
        """Until it ends: the reason, or None when somebody stopped it.

        Raises OperationLostError if another worker has taken over.
        """
        duel = Duel(rate_qps=race.rate_qps, seed=race.seed)
        board.watch(race.pk)  # Whoever started it looks at it.
        began = renewed = self._clock()
        while True:
            tick = self._clock()
            if tick - renewed >= RENEW_SECONDS:
                operations.renew(operation, seconds=CLAIM_SECONDS)
                renewed = tick
            wish = LiveRace.objects.filter(pk=race.pk, ended_at__isnull=True).values_list(
                "rate_qps", "operation__cancel_requested_at"
            )
            found = wish.first()
            if found is None or found[1] is not None:
                return None
            if tick - began >= LONGEST_SECONDS:
                return LiveRace.End.TIME
            if self._is_unwatched(race):
                return LiveRace.End.UNWATCHED
            self._move(duel, rate=found[0], tick=tick)
            self._show(race, duel)
            self._pause(max(0.0, tick + TICK_SECONDS - self._clock()))

    def _is_unwatched(self, race: LiveRace) -> bool:
        """A cache that forgot its viewers has none."""
        looked = board.watched_at(race.pk)
        return looked is None or timezone.now() - looked > UNWATCHED_AFTER

    def _move(self, duel: Duel, *, rate: float, tick: float) -> None:
        if rate != duel.rate_qps:
            duel.rate_qps = rate
        goal = duel.now + PACE * TICK_SECONDS
        deadline = tick + BUSY_SHARE * TICK_SECONDS
        while duel.now < goal and self._clock() < deadline:
            duel.advance(goal - duel.now)

    def _show(self, race: LiveRace, duel: Duel) -> None:
        self._moves.append((self._clock(), duel.now))
        (before, virtual), (now, reached) = self._moves[0], self._moves[-1]
        pace = (reached - virtual) / (now - before) if now > before else PACE
        board.publish(
            race.pk, board.Snapshot(written_at=timezone.now(), pace=pace, view=duel.view())
        )
