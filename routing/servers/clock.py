"""The router's two clocks: monotonic for durations and decisions, Unix time for records."""

import time

monotonic = time.monotonic
"""Seconds that never go back. The loop's own clock stands still within a tick and counts
milliseconds only, too coarse to learn the speed of an engine from."""


def unix_now() -> float:
    """Unix time in seconds."""
    return time.time_ns() * 1e-9


def cpu_seconds() -> float:
    """CPU time of this thread: what work costs whatever else the machine does."""
    return time.thread_time()
