"""The router's two clocks: monotonic for durations and decisions, Unix time for records."""

from asyncio import get_running_loop
from datetime import UTC, datetime
from time import perf_counter


def monotonic() -> float:
    """Seconds of the running loop's clock; never goes back."""
    return get_running_loop().time()


def unix_now() -> float:
    """Unix time in seconds."""
    return datetime.now(tz=UTC).timestamp()


def precise() -> float:
    """Seconds for timing within one tick; the loop's clock stands still there."""
    return perf_counter()
