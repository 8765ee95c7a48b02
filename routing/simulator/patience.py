"""Deadlines of one length, longer where a request asks for it: many are set, few are missed."""

import heapq
import math
from collections.abc import Callable, Collection

from routing.simulator.clock import Clock

Missed = Callable[[int, int, float], None]
_STALE = 64
"""Deadlines of requests that are over; more than so many more than are open are swept out."""


class Patience:
    """Of requests by number and attempt; one that is over holds nothing here but two numbers."""

    def __init__(
        self, clock: Clock, seconds: float, missed: Missed, *, still_open: Collection[int]
    ) -> None:
        """`missed` is called with number, attempt and time, if the number is still open then."""
        self._clock, self._seconds = clock, seconds
        self._missed, self._open = missed, still_open
        self._due: list[tuple[float, int, int]] = []
        self._rings_at = math.inf

    def start(self, number: int, attempt: int, *, longer: float = 0.0) -> None:
        """The time of a request runs from now, `longer` by so many seconds."""
        if len(self._due) > 2 * len(self._open) + _STALE:
            self._due = [entry for entry in self._due if entry[1] in self._open]
            heapq.heapify(self._due)
        heapq.heappush(self._due, (self._clock.now + self._seconds + longer, number, attempt))
        self._arm()

    def _arm(self) -> None:
        due = self._due
        while due and due[0][1] not in self._open:
            heapq.heappop(due)
        if due and due[0][0] < self._rings_at:
            self._rings_at = due[0][0]
            self._clock.at(self._rings_at, self._ring)

    def _ring(self, now: float) -> None:
        if now >= self._rings_at:
            self._rings_at = math.inf
        while self._due and self._due[0][0] <= now:
            _, number, attempt = heapq.heappop(self._due)
            if number in self._open:
                self._missed(number, attempt, now)
        self._arm()
