"""What the time of one replica went to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds since the start of the run; they add up to it."""

    prefill: float
    decode: float
    idle: float
    """A hang is idle, too."""
    down: float


class TimeSpent:
    """Steps are booked when they are over."""

    def __init__(self) -> None:
        self.prefill_seconds = self.decode_seconds = 0.0
        self._down_seconds = 0.0
        self._down_since: float | None = None

    def book(self, seconds: float, prefill_share: float) -> None:
        """Time of steps, and the part of it that went to prompts."""
        self.prefill_seconds += seconds * prefill_share
        self.decode_seconds += seconds * (1 - prefill_share)

    def down(self, now: float) -> None:
        """The process has ended."""
        self._down_since = now

    def up(self, now: float) -> None:
        """Another one has begun."""
        if self._down_since is not None:
            self._down_seconds += now - self._down_since
            self._down_since = None

    def spent(self, now: float, *, unbooked: float, prefill_share: float) -> Spent:
        """With the time of a step that is not over."""
        prefill = self.prefill_seconds + unbooked * prefill_share
        decode = self.decode_seconds + unbooked * (1 - prefill_share)
        down = self._down_seconds
        if self._down_since is not None:
            down += now - self._down_since
        idle = max(0.0, now - prefill - decode - down)
        return Spent(prefill=prefill, decode=decode, idle=idle, down=down)
