"""The router's two clocks: monotonic for durations and decisions, Unix time for records."""

import time
from datetime import UTC, datetime


def monotonic() -> float:
    """Seconds that never go back. The loop's own clock stands still within a tick and counts
    milliseconds only, too coarse to learn the speed of an engine from."""
    return time.monotonic()


def unix_now() -> float:
    """Unix time in seconds."""
    return datetime.now(tz=UTC).timestamp()
