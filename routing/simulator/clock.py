"""Virtual time: calls in order of time, then of priority, then of the order they were asked for."""

import heapq
import itertools
import math
from collections.abc import Callable

Call = Callable[[float], None]

ENGINE, SIGNAL, ARRIVAL = 0, 1, 2
"""What is due at one moment: engines end their steps, readings are taken, requests arrive."""


class Clock:
    """Seconds since the start. Time never goes back: what is asked for the past raises."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, int, Call]] = []
        self._turn = itertools.count()

    def at(self, when: float, call: Call, *, priority: int = ENGINE) -> None:
        """Call at a moment, with that moment. Raises ValueError for a moment that has passed."""
        if when < self.now:
            raise ValueError(f"It is {self.now:.6f} s; nothing can happen at {when:.6f} s.")
        heapq.heappush(self._heap, (when, priority, next(self._turn), call))

    def after(self, seconds: float, call: Call, *, priority: int = ENGINE) -> None:
        """Call in `seconds`."""
        self.at(self.now + seconds, call, priority=priority)

    @property
    def next_at(self) -> float:
        """When something happens next; infinity when nothing does."""
        return self._heap[0][0] if self._heap else math.inf

    def step(self) -> None:
        """The next call. There must be one."""
        self.now, _, _, call = heapq.heappop(self._heap)
        call(self.now)

    def run(self, until: float = math.inf) -> None:
        """All calls up to and including a moment, which then is now (unless it is infinite)."""
        while self._heap and self._heap[0][0] <= until:
            self.step()
        if until > self.now and until != math.inf:
            self.now = until
