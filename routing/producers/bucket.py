"""A token bucket in virtual time: what may be taken at this moment, and when more may be."""


class Bucket:
    """A token bucket that may go below zero; refilled when looked at."""

    __slots__ = ("_at", "_level", "rate", "size")

    def __init__(self, rate: float, size: float, *, now: float) -> None:
        self.rate, self.size = rate, size
        self._level, self._at = size, now

    def resize(self, rate: float, size: float, *, now: float) -> None:
        """Another limit; what was used stays used."""
        used = self.size - self.level(now=now)
        self.rate, self.size = rate, size
        self._level = min(size, size - used)

    def level(self, *, now: float) -> float:
        """What may be taken at this moment."""
        if now > self._at:
            self._level = min(self.size, self._level + (now - self._at) * self.rate)
            self._at = now
        return self._level

    def wait(self, amount: float, *, now: float) -> float:
        """Seconds until `amount`, or all that fits, may be taken; 0 when it may be at once."""
        return max(0.0, (min(amount, self.size) - self.level(now=now)) / self.rate)

    def take(self, amount: float, *, now: float) -> None:
        """Take it, whatever the level; below 0 it gives back."""
        self._level = min(self.size, self.level(now=now) - amount)

    def give_back(self, amount: float) -> None:
        """Undo a part of what was taken."""
        self._level = min(self.size, self._level + amount)
