"""The usage spool: every attempt's event on disk until the control plane has acknowledged it.

Files in the spool's folder:

- `open.jsonl`: events of the segment that is being filled, one JSON line each, appended every
  `WRITE_SECONDS`. A `kill -9` loses at most the events of that window; nothing was told of them.
- `<first>-<last>.json`: a closed segment, immutable, exactly what is delivered.
- `acknowledged`: the last acknowledged sequence number; numbers go on after all files are gone.

A segment is closed after `segment_seconds` or `segment_events`. Closed segments are kept until they
are acknowledged. When they exceed the bound, the oldest are kept, further events are dropped before
they get a number (so the numbers stay gapless), and the drop is counted for an alert.
"""

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import msgspec

from routing.core.usage import UsageEvent, UsageSegment, segment_of
from routing.servers import clock
from routing.servers.files import append_bytes, write_durably

logger = logging.getLogger(__name__)

WRITE_SECONDS = 0.05
SEGMENT_SECONDS = 1.0
SEGMENT_EVENTS = 256
MAX_BUFFERED_EVENTS = 4096


class AcknowledgeError(Exception):
    """A sequence number that no closed segment reaches was acknowledged."""


@dataclass(frozen=True, slots=True)
class _ClosedSegment:
    first: int
    last: int
    path: Path
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolState:
    """What the admin port says about the spool."""

    last_sequence: int
    """Highest number on disk."""
    closed_through: int
    """Highest number in a closed segment."""
    pending_segments: int
    pending_bytes: int
    complete_until: float
    """Unix time; every event that ended before it is in a closed segment."""
    dropped_segments: int
    dropped_events: int


class UsageSpool:
    """One writer per folder; the folder must be locked by the caller."""

    def __init__(
        self,
        folder: Path,
        *,
        router: str,
        max_bytes: int,
        segment_events: int = SEGMENT_EVENTS,
        segment_seconds: float = SEGMENT_SECONDS,
    ) -> None:
        self._folder = folder
        self._open_path = folder / "open.jsonl"
        self._router = router
        self._max_bytes = max_bytes
        self._segment_events = segment_events
        self._segment_seconds = segment_seconds
        self._closed: deque[_ClosedSegment] = deque()
        self._open: list[UsageEvent] = []
        self._unwritten: list[UsageEvent] = []
        self._timer: asyncio.TimerHandle | None = None
        self._open_since = 0.0
        self._closed_through = 0
        self._bytes = 0
        self.dropped_segments = 0
        self.dropped_events = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._recover()

    # Writing.

    def append(self, event: UsageEvent) -> None:
        """Give an event its sequence number and keep it. `event.sequence` is ignored."""
        if len(self._unwritten) >= MAX_BUFFERED_EVENTS:
            self.write()
        self._unwritten.append(event)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_SECONDS, self._on_timer)

    def write(self) -> None:
        """Put what is buffered on disk, and close the segment when it is full."""
        events, self._unwritten = self._unwritten, []
        if events and self._bytes >= self._max_bytes:
            self._drop(events)
        elif events:
            self._write_open(events)
        if len(self._open) >= self._segment_events:
            self._close_segment()

    def close(self) -> None:
        """Write and close everything; the spool takes no event afterwards."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self.write()
        self._close_segment()

    def _on_timer(self) -> None:
        self._timer = None
        now = clock.monotonic()
        self.write()
        if self._open and now - self._open_since >= self._segment_seconds:
            self._close_segment()
        if self._open:
            # Comes back to close the segment in time also when no further event arrives.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(WRITE_SECONDS, self._on_timer)

    def _drop(self, events: list[UsageEvent]) -> None:
        self.dropped_events += len(events)
        self.dropped_segments += 1
        logger.error(
            "The usage spool is full (%d bytes): %d events were dropped. Is the control plane"
            " fetching segments of this router?",
            self._bytes,
            len(events),
        )

    def _write_open(self, events: list[UsageEvent]) -> None:
        if not self._open:
            self._open_since = clock.monotonic()
        numbered = [
            msgspec.structs.replace(event, sequence=self._written + offset)
            for offset, event in enumerate(events, start=1)
        ]
        append_bytes(self._open_path, msgspec.json.Encoder().encode_lines(numbered))
        self._open += numbered

    @property
    def _written(self) -> int:
        return self._open[-1].sequence if self._open else self._closed_through

    def _close_segment(self) -> None:
        if not self._open:
            return
        self._store_closed(segment_of(self._router, tuple(self._open)))
        self._open = []
        self._open_path.unlink(missing_ok=True)

    def _store_closed(self, segment: UsageSegment) -> None:
        content = msgspec.json.encode(segment)
        first, last = segment.first_sequence, segment.last_sequence
        path = self._folder / f"{first:016d}-{last:016d}.json"
        write_durably(path, content)
        self._closed.append(_ClosedSegment(first, last, path, len(content)))
        self._bytes += len(content)
        self._closed_through = last

    # Delivery.

    def state(self) -> SpoolState:
        """See SpoolState."""
        waiting = self._open or self._unwritten
        return SpoolState(
            last_sequence=self._written,
            closed_through=self._closed_through,
            pending_segments=len(self._closed),
            pending_bytes=self._bytes,
            complete_until=waiting[0].ended_at if waiting else clock.unix_now(),
            dropped_segments=self.dropped_segments,
            dropped_events=self.dropped_events,
        )

    def segments_after(self, sequence: int, *, limit: int) -> list[bytes]:
        """JSON of closed segments with events beyond a number, oldest first."""
        found = [segment for segment in self._closed if segment.last > sequence]
        return [segment.path.read_bytes() for segment in found[:limit]]

    def acknowledge(self, sequence: int) -> int:
        """Delete segments up to a number and return how many; doing it twice is harmless.

        Raises AcknowledgeError for a number beyond the closed segments.
        """
        if sequence > self._closed_through:
            raise AcknowledgeError(
                f"Sequence {sequence} was not delivered; closed segments end at"
                f" {self._closed_through}."
            )
        done = 0
        if self._closed and self._closed[0].last <= sequence:
            write_durably(self._folder / "acknowledged", b"%d" % sequence)
        while self._closed and self._closed[0].last <= sequence:
            segment = self._closed.popleft()
            segment.path.unlink(missing_ok=True)
            self._bytes -= segment.size
            done += 1
        return done

    # Recovery.

    def _recover(self) -> None:
        """Read what an earlier process left; its open segment becomes a closed one."""
        self._closed_through = self._acknowledged()
        for partial in self._folder.glob("*.partial"):
            partial.unlink()
        for path in sorted(self._folder.glob("*-*.json")):
            first, last = (int(part) for part in path.stem.split("-"))
            size = path.stat().st_size
            self._closed.append(_ClosedSegment(first, last, path, size))
            self._bytes += size
            self._closed_through = max(self._closed_through, last)
        events = tuple(
            event for event in self._left_open() if event.sequence > self._closed_through
        )
        if events:
            self._store_closed(segment_of(self._router, events))
        self._open_path.unlink(missing_ok=True)

    def _acknowledged(self) -> int:
        path = self._folder / "acknowledged"
        return int(path.read_bytes()) if path.exists() else 0

    def _left_open(self) -> list[UsageEvent]:
        """Whole events of the open file, up to the first line that is torn."""
        events: list[UsageEvent] = []
        if not self._open_path.exists():
            return events
        with contextlib.suppress(msgspec.DecodeError):
            for line in self._open_path.read_bytes().splitlines():
                events.append(msgspec.json.decode(line, type=UsageEvent))  # noqa: PERF401 - keeps the events before a torn line
        return events
