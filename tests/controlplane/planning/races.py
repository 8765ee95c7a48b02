"""Live races, and a clock for their worker's loop."""

from collections.abc import Callable
from typing import Any

from controlplane.planning import services
from controlplane.planning.models import LiveRace
from controlplane.planning.services.driving import TICK_SECONDS, Driver
from tests.factories import make_olga


class Time:
    """A clock that moves only when somebody waits; `then` happens at each wait."""

    def __init__(self, then: Callable[[int], None], *, step: float = TICK_SECONDS) -> None:
        self.now, self.ticks, self._then, self._step = 0.0, 0, then, step

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += self._step
        self.ticks += 1
        self._then(self.ticks)

    def driver(self) -> Driver:
        return Driver(clock=self, pause=self.pause)


def nothing(_tick: int) -> None:
    """Nobody does anything."""


def make_race(**overrides: Any) -> LiveRace:
    actor = overrides.pop("actor", None) or make_olga()
    return services.start_race(actor=actor, rate_qps=overrides.pop("rate_qps", 2))
