"""The usage spool: every attempt's event on disk until the control plane has acknowledged it.

Files in the spool's folder:

- `open.jsonl`: events of the segment that is being filled, one JSON line each, appended every
  `WRITE_SECONDS`. A `kill -9` loses at most the events of that window; nobody was told of them.
- `<first>.closing`: such a file after its segment was closed, until the segment is durable.
- `<first>-<last>.json`: a closed segment, immutable, on disk (fsync), exactly what is delivered.

A segment is closed after `segment_seconds` or `segment_events`; a thread makes it durable, because
that can take as long as a disk likes. Closed segments are kept until they are acknowledged. The
file of the newest acknowledged one stays, so that numbers go on after a restart; it is delivered
again then, which is harmless, because delivery is at least once.

When closed segments exceed the bound, the oldest are kept, further events are dropped before they
get a number, so that numbers stay gapless, and the drop is counted for an alert.
"""

import asyncio
import contextlib
import logging
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from routing.core.usage import UsageEvent, UsageSegment, segment_of
from routing.servers import clock
from routing.servers.files import append_bytes, write_durably

logger = logging.getLogger(__name__)

WRITE_SECONDS = 0.05
SEGMENT_SECONDS = 1.0
SEGMENT_EVENTS = 256
MAX_BUFFERED_EVENTS = 4096
PAGE_BYTES = 8 * 1024 * 1024
"""Size of one delivery; readers of segments bound what they take, too."""
MAX_CLOSING = 64
"""Segments that may wait for a disk; beyond it events are dropped, as in a full spool."""
RETRY_SECONDS = 1.0
"""Pause after a segment could not be stored, for example on a full disk."""


class AcknowledgeError(Exception):
    """A sequence number that no closed segment reaches was acknowledged."""


@dataclass(frozen=True, slots=True)
class _Stored:
    first: int
    last: int
    path: Path
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolState:
    """What the admin port says about the spool."""

    last_sequence: int
    """Highest number given to an event."""
    closed_through: int
    """Highest number in a closed segment."""
    pending_segments: int
    pending_bytes: int
    complete_until: float
    """Unix time; every event that ended before it is in a closed segment."""
    dropped_segments: int
    dropped_events: int


class UsageSink(Protocol):
    """Where a process that serves requests puts its usage."""

    def append(self, event: UsageEvent) -> None:
        """Keep an event; it gets its sequence number where it is written."""

    def state(self) -> SpoolState:
        """See SpoolState."""


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
        self._unwritten: list[UsageEvent] = []
        self._open: list[UsageEvent] = []
        self._open_since = 0.0
        self._closing: deque[UsageSegment] = deque()
        self._stored: deque[_Stored] = deque()
        self._newest_acknowledged: Path | None = None
        self._closed_through = 0
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._storing: Future[_Stored] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="usage-spool")
        self.dropped_segments = 0
        self.dropped_events = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._recover()

    # Writing.

    def append(self, event: UsageEvent) -> None:
        """Keep an event, which nobody else may hold on to; it gets its sequence number here."""
        if len(self._unwritten) >= MAX_BUFFERED_EVENTS:
            self.write()
        self._unwritten.append(event)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_SECONDS, self._on_timer)

    def write(self) -> None:
        """Put what is buffered on disk, and close the segment when it is full."""
        events, self._unwritten = self._unwritten, []
        if events and self._bytes >= self._max_bytes:
            self._drop(events, f"it holds {self._bytes} bytes; is anybody fetching segments?")
        elif events and len(self._closing) >= MAX_CLOSING:
            self._drop(events, f"{MAX_CLOSING} segments could not be stored yet.")
        elif events:
            self._write_open(events)
        if len(self._open) >= self._segment_events:
            self._close_segment()

    def close(self) -> None:
        """Store everything, however long the disk takes; the spool takes no event afterwards."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self.write()
        self._close_segment()
        self._thread.shutdown(wait=True)
        try:
            while self._closing:
                self._register(self._store(self._closing[0]))
        except OSError as error:
            logger.error("Usage stays in .closing files for the next start: %s", error)  # noqa: TRY400 - the sentence is the whole story

    def _on_timer(self) -> None:
        self._timer = None
        self.write()
        if self._open and clock.monotonic() - self._open_since >= self._segment_seconds:
            self._close_segment()
        if self._open:
            # Comes back to close the segment in time also when no further event arrives.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(WRITE_SECONDS, self._on_timer)

    def _drop(self, events: list[UsageEvent], reason: str) -> None:
        self.dropped_events += len(events)
        self.dropped_segments += 1
        logger.error("The usage spool dropped %d events: %s", len(events), reason)

    def _write_open(self, events: list[UsageEvent]) -> None:
        # Nobody else has the events, and a copy of each would cost more than writing it.
        for sequence, event in enumerate(events, start=self._last_sequence + 1):
            msgspec.structs.force_setattr(event, "sequence", sequence)
        try:
            append_bytes(self._open_path, msgspec.json.Encoder().encode_lines(events))
        except OSError as error:
            self._drop(events, f"{error}.")
            return
        if not self._open:
            self._open_since = clock.monotonic()
        self._open += events

    @property
    def _last_sequence(self) -> int:
        if self._open:
            return self._open[-1].sequence
        return self._closing[-1].last_sequence if self._closing else self._closed_through

    # Closing.

    def _close_segment(self) -> None:
        if not self._open:
            return
        segment = segment_of(self._router, tuple(self._open))
        try:
            self._open_path.replace(self._closing_path(segment.first_sequence))
        except OSError as error:
            # It stays open, so that its numbers are not given again, and is tried again.
            logger.error("A usage segment could not be closed: %s", error)  # noqa: TRY400 - the sentence is the whole story
            return
        self._open = []
        self._closing.append(segment)
        self._store_next()

    def _store_next(self) -> None:
        """Let the thread store the oldest segment that waits; one at a time, in order."""
        if not self._closing or self._storing:
            return
        loop = asyncio.get_running_loop()
        self._storing = self._thread.submit(self._store, self._closing[0])
        self._storing.add_done_callback(
            lambda done: loop.call_soon_threadsafe(self._after_store, done)
        )

    def _after_store(self, done: Future[_Stored]) -> None:
        self._storing = None
        error = done.exception()
        if error is not None:
            logger.error("A usage segment could not be stored and is tried again: %s", error)
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._store_next)
        elif self._closing:
            self._register(done.result())
            self._store_next()

    def _store(self, segment: UsageSegment) -> _Stored:
        """Runs in the thread: touches nothing but the file."""
        first, last = segment.first_sequence, segment.last_sequence
        path = self._folder / f"{first:016d}-{last:016d}.json"
        content = msgspec.json.encode(segment)
        write_durably(path, content)
        return _Stored(first, last, path, len(content))

    def _register(self, stored: _Stored) -> None:
        """The oldest closing segment is durable: deliver it."""
        self._closing.popleft()
        self._add_stored(stored)
        self._closing_path(stored.first).unlink(missing_ok=True)

    def _add_stored(self, stored: _Stored) -> None:
        self._stored.append(stored)
        self._bytes += stored.size
        self._closed_through = max(self._closed_through, stored.last)

    def _closing_path(self, first: int) -> Path:
        return self._folder / f"{first:016d}.closing"

    # Delivery.

    def state(self) -> SpoolState:
        """See SpoolState."""
        waiting = self._closing[0].events if self._closing else self._open or self._unwritten
        return SpoolState(
            last_sequence=self._last_sequence,
            closed_through=self._closed_through,
            pending_segments=len(self._stored),
            pending_bytes=self._bytes,
            complete_until=waiting[0].ended_at if waiting else clock.unix_now(),
            dropped_segments=self.dropped_segments,
            dropped_events=self.dropped_events,
        )

    def segments_after(self, sequence: int, *, limit: int) -> list[bytes]:
        """JSON of closed segments with events beyond a number, oldest first.

        At most `limit`, and no more than about `PAGE_BYTES`, but at least one if there is any.
        """
        page: list[bytes] = []
        left = PAGE_BYTES
        for segment in self._stored:
            if segment.last > sequence and len(page) < limit and left > 0:
                page.append(segment.path.read_bytes())
                left -= segment.size
        return page

    def acknowledge(self, sequence: int) -> int:
        """Forget segments up to a number and return how many; doing it twice is harmless.

        Raises AcknowledgeError for a number beyond the closed segments.
        """
        if sequence > self._closed_through:
            raise AcknowledgeError(
                f"Sequence {sequence} was not delivered; closed segments end at"
                f" {self._closed_through}."
            )
        done = 0
        while self._stored and self._stored[0].last <= sequence:
            segment = self._stored.popleft()
            self._bytes -= segment.size
            if self._newest_acknowledged:
                self._newest_acknowledged.unlink(missing_ok=True)
            self._newest_acknowledged = segment.path
            done += 1
        return done

    # Recovery.

    def _recover(self) -> None:
        """Read what an earlier process left; its unfinished segments become closed ones."""
        for partial in self._folder.glob("*.partial"):
            partial.unlink()
        for path in sorted(self._folder.glob("*-*.json")):
            first, last = (int(part) for part in path.stem.split("-"))
            self._add_stored(_Stored(first, last, path, path.stat().st_size))
        left = [*sorted(self._folder.glob("*.closing")), self._open_path]
        closed = self._closed_through
        events = tuple(
            event for path in left for event in _events_in(path) if event.sequence > closed
        )
        for start in range(0, len(events), self._segment_events):
            part = events[start : start + self._segment_events]
            self._add_stored(self._store(segment_of(self._router, part)))
        for path in left:
            path.unlink(missing_ok=True)


def _events_in(path: Path) -> list[UsageEvent]:
    """Whole events of a file of lines, up to the first line that is torn."""
    events: list[UsageEvent] = []
    if path.exists():
        with contextlib.suppress(msgspec.DecodeError):
            for line in path.read_bytes().splitlines():
                events.append(msgspec.json.decode(line, type=UsageEvent))  # noqa: PERF401 - keeps the events before a torn line
    return events
