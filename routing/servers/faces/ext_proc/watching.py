"""What an answer that passes tells: its status, its first token, how much of it came, its usage.

The answer is not held, except for a whole JSON answer whose usage stands somewhere in it.
"""

import re
from collections.abc import Callable
from typing import Protocol

from routing.engines.base import TokenUsage, merged_usage
from routing.servers.attempt import CLIENT_GONE, Ending
from routing.servers.held import UNSEEN
from routing.servers.relay import EVENT_STREAM, PARTIAL_EVENT_BYTES, TOKENS_PER_REPORT, event_data
from routing.servers.upstream import FailureKind

WHOLE_ANSWER_BYTES = 4 * 1024 * 1024
"""Of a longer answer the usage is not read."""

_USAGE = re.compile(rb'"usage":\s*\{')
_ENGINE_ERROR = b'data: {"error"'

UsageOf = Callable[[bytes], TokenUsage | None]


class Watched(Protocol):
    """A pick that is told of its answer; see `routing.servers.faces.picks.Pick`."""

    def served(self, address: str) -> None:
        """`ip:port` that answered."""

    def first_token(self) -> None:
        """The first token of a stream passed."""

    def tokens(self, count: int) -> None:
        """`count` more events of a stream passed."""

    def failed(self, kind: FailureKind) -> None:
        """The endpoint failed this request."""

    def finish(self, ending: Ending) -> None:
        """The end was seen."""

    def hold(self) -> None:
        """Nothing more will be seen."""


class AnswerWatch:
    """One answer. Whoever made it calls `ended` or `broke`, once."""

    def __init__(
        self, pick: Watched, usage_of: UsageOf, *, status: int | None, content_type: bytes
    ) -> None:
        self._pick = pick
        self._usage_of = usage_of
        self._status = status or 200
        self.is_stream = status == 200 and content_type.startswith(EVENT_STREAM)
        self._is_begun = self._has_failed = False
        self._events = self._reported = 0
        self._partial = b""
        self._first_usage = self._last_usage = b""
        self._whole: list[bytes] = []
        self._size = 0

    def take(self, data: bytes, *, is_timely: bool) -> None:
        """A part of the body; `is_timely` when it came as the engine sent it."""
        if not data:
            return
        if not self.is_stream:
            self._collect(data)
            return
        if is_timely and not self._is_begun:
            self._is_begun = True
            self._pick.first_token()
        self._read(data)

    def ended(self) -> None:
        """The whole answer passed."""
        self._report(at_least=1)
        status = self._status
        if status >= 500:
            self._pick.failed("status")
        is_good = status < 400 and not self._has_failed
        ending = Ending(
            outcome="ok" if is_good else "error", status=status, delivered=True, usage=self._usage()
        )
        self._pick.finish(ending)

    def broke(self) -> None:
        """Nothing more comes although the answer has not ended: a client left, or an engine died.

        Which of them it was, nobody tells here; the endpoint is not blamed. An error has ended in
        any case.
        """
        if self._status >= 400:
            self.ended()
            return
        self._report(at_least=1)
        usage = self._usage() if self.is_stream else None
        ending = Ending(outcome="aborted", status=CLIENT_GONE, delivered=True, usage=usage)
        self._pick.finish(ending)

    def leave(self, *, is_over: bool) -> None:
        """The body passed elsewhere; `is_over` when it has ended, however it went.

        An error has ended in any case. Of another answer nobody tells the end.
        """
        if self._status >= 400:
            self.ended()
        elif is_over:
            self._pick.finish(UNSEEN)
        else:
            self._pick.hold()

    def _collect(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= WHOLE_ANSWER_BYTES:
            self._whole.append(data)
        else:
            self._whole.clear()

    def _read(self, data: bytes) -> None:
        """Count whole events and keep the begin of one that is not."""
        if self._partial:
            data = self._partial + data
            self._partial = b""
        if not data.endswith(b"\n\n"):
            cut = _end_of_last_event(data)
            self._partial = data[cut:]
            data = data[:cut]
            if len(self._partial) > PARTIAL_EVENT_BYTES:
                self._partial = b""
        self._events += data.count(b"\n\n") or data.count(b"\r\n\r\n")
        self._report(at_least=TOKENS_PER_REPORT)
        if _ENGINE_ERROR in data:
            self._has_failed = True
        if b'"usage"' in data:
            self._note_usage(data)

    def _note_usage(self, data: bytes) -> None:
        """Inside JSON text a quote is escaped, so the match is a member."""
        separator = b"\r\n\r\n" if data.endswith(b"\r\n\r\n") else b"\n\n"
        for event in data.split(separator):
            if _USAGE.search(event):
                self._first_usage = self._first_usage or event
                self._last_usage = event

    def _report(self, *, at_least: int) -> None:
        fresh = self._events - self._reported
        if fresh >= at_least:
            self._pick.tokens(fresh)
            self._reported = self._events

    def _usage(self) -> TokenUsage | None:
        if not self.is_stream:
            return self._usage_of(b"".join(self._whole)) if self._whole else None
        if not self._last_usage:
            return None
        first, last = (
            self._usage_of(event_data(event)) for event in (self._first_usage, self._last_usage)
        )
        return merged_usage(first, last)


def _end_of_last_event(data: bytes) -> int:
    """Position behind the last blank line; 0 when no event is complete."""
    ends = [data.rfind(mark) + len(mark) for mark in (b"\n\n", b"\r\n\r\n") if mark in data]
    return max(ends, default=0)
