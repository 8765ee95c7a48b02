"""Who waits for an endpoint is priced again while another one is idle: that may be the better now.

The endpoint that was chosen for a request may stay full for long. In each search that found nobody
a few of those that wait are priced again, all in turn: as often as something changes, at a bounded
cost. Whoever would choose an idle endpoint waits for that one from then on, in its turn, as a
request that came now would. Endpoints that are half empty are no reason: prefixes that move there
cost as much as the wait (docs/decisions/0018-wait-for-the-chosen-endpoint.md).
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

from routing.pool.queue import RequestQueue
from routing.producers.fair_share import Ticket

MOST_PRICED: Final = 4
"""Requests that are priced in one search: each costs 0.1 to 1 ms."""
MOST_PASSED: Final = 64
"""Requests that are looked at in one search."""

Gate = tuple[Hashable, str | None]
"""The endpoint that requests wait for, whoever they are: they share its room. Without one the first
part is equal for requests that may use the same endpoints."""


def endpoint_of(ticket: Ticket) -> str | None:
    """The endpoint that a request waits for; `None` for any."""
    gate = ticket.gate
    return gate[1] if isinstance(gate, tuple) else None


class ChoosingAgain:
    """See the module; one per queue."""

    def __init__(self, queue: RequestQueue) -> None:
        self._queue = queue
        self._next: deque[int] = deque()
        """Numbers of tickets that were waiting when the round began, and were not looked at yet."""

    def look(self, better: Callable[[Ticket], Gate | None]) -> bool:
        """Ask for a better gate for one after the other, until one is moved: true then."""
        if not self._next:
            self._next.extend(ticket.number for ticket in self._queue)
        priced = 0
        for _ in range(min(MOST_PASSED, len(self._next))):
            ticket = self._queue.find(self._next.popleft())
            if ticket is None or endpoint_of(ticket) is None:
                continue
            gate = better(ticket)
            if gate is not None and gate != ticket.gate:
                self._queue.move(ticket, gate)
                return True
            priced += 1
            if priced == MOST_PRICED:
                break
        return False
