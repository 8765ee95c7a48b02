"""What happened here and the peers have not been told yet: begun prompts, breakers.

Bounded in entries and in bytes per second; what does not fit is dropped, oldest first, and counted:
a peer that does not know of a prompt prices it as a miss, no more.
"""

from collections import deque

from routing.core.peer_messages import Begun, BreakerNews, name_of, pack_keys
from routing.core.table import Instance

KEYS_PER_PART = 128
"""A part with its names stays below what a network passes in one piece."""
MOST_KEYS = 1024
"""Keys told of one prompt; its beginning is what siblings share."""
BYTES_PER_SECOND = 2_000_000.0
MAX_WAITING = 4096


class PeerNews:
    """Does nothing until `is_wanted`."""

    def __init__(self) -> None:
        self.is_wanted = False
        self.dropped = 0
        """Parts of prompts that found no room."""
        self._parts: deque[Begun] = deque(maxlen=MAX_WAITING)
        self._breakers: deque[BreakerNews] = deque(maxlen=MAX_WAITING)
        self._budget, self._budget_at = BYTES_PER_SECOND, 0.0

    def begun(self, instance: Instance, *, lease: int, keys: list[int]) -> None:
        """A prompt is on its way to an endpoint."""
        if self.is_wanted:
            self._add(instance, lease, keys, is_withdrawn=False)

    def withdrawn(self, instance: Instance, *, lease: int, keys: list[int]) -> None:
        """It was never computed there."""
        if self.is_wanted:
            self._add(instance, lease, keys, is_withdrawn=True)

    def _add(self, instance: Instance, lease: int, keys: list[int], *, is_withdrawn: bool) -> None:
        name = name_of(instance)
        for start in range(0, min(len(keys), MOST_KEYS), KEYS_PER_PART):
            part = pack_keys(keys[start : start + KEYS_PER_PART])
            self.dropped += len(self._parts) == MAX_WAITING
            self._parts.append(Begun(name, lease, part, is_withdrawn))

    def breaker(self, instance: Instance, kind: str, *, seconds: float | None) -> None:
        """A breaker opened for so long, or closed (`None`)."""
        if self.is_wanted:
            self._breakers.append(BreakerNews(name_of(instance), kind, seconds))

    def take_breakers(self) -> tuple[BreakerNews, ...]:
        """All of them, once."""
        taken = tuple(self._breakers)
        self._breakers.clear()
        return taken

    def take_prompts(self, *, now: float) -> list[Begun]:
        """As many as may be told by now, oldest first; the others wait."""
        elapsed = max(0.0, now - self._budget_at)
        self._budget = min(self._budget + elapsed * BYTES_PER_SECOND, BYTES_PER_SECOND)
        self._budget_at = now
        taken = []
        while self._parts and self._budget > 0:
            part = self._parts.popleft()
            self._budget -= len(part.keys)
            taken.append(part)
        return taken
