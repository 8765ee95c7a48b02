"""How old the data on a page is; ages come from the data, never from the rendering time."""

from dataclasses import dataclass
from datetime import UTC, datetime

STALE_SECONDS = 120.0
LAST_KNOWN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Source:
    """A source of a page's numbers and the time of its newest row; None means no row yet."""

    name: object
    at: datetime | None
    expected_seconds: float = 0.0
    """Usual distance of two rows, added to the limits: 3600 for hourly roll-ups."""

    @property
    def seconds(self) -> float | None:
        """Age of the newest row."""
        if self.at is None:
            return None
        return max(0.0, (datetime.now(UTC) - self.at).total_seconds())

    @property
    def level(self) -> str:
        """fresh, stale, last-known or none."""
        seconds = self.seconds
        if seconds is None:
            return "none"
        late = seconds - self.expected_seconds
        if late > LAST_KNOWN_SECONDS:
            return "last-known"
        return "stale" if late > STALE_SECONDS else "fresh"
