"""Receiver that passes an engine's event stream on to the client, event by whole event.

The bytes of an event are not touched, with two exceptions: the usage event that only the router
asked for is left out, and with a prefill/decode pair the `cached_tokens` in it become those of the
prefill engine, because the decode engine counts what it pulled as cached. Other answers are
collected. Nothing goes to the client before the first byte of the body is here, so that a
retry elsewhere stays possible until then.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from routing.core.renaming import Renaming
from routing.engines.base import Engine, TokenUsage, merged_usage
from routing.servers.http import Connection
from routing.servers.upstream import Collected, Headers, UpstreamConnection

EVENT_STREAM = b"text/event-stream"
PARTIAL_EVENT_BYTES = 1024 * 1024
TOKENS_PER_REPORT = 8

_ENGINE_ERROR = b'data: {"error"'
_USAGE = re.compile(rb'"usage":\s*\{')
_NO_CHOICES = re.compile(rb'"choices":\s*\[\s*\]')
_CACHED = re.compile(rb'("cached_tokens":\s*)(?:\d+|null)')


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayTerms:
    """What a relay must do to the answer, and whom it tells."""

    answer_headers: bytes
    hide_usage: bool
    """The client did not ask for the usage event."""
    cached_tokens: Callable[[], int | None]
    """The prefill engine's own count, when it is known; `None` leaves the answer's."""
    on_first: Callable[[], None]
    on_tokens: Callable[[int], None]
    told: Callable[[bytes], bytes] | None = None
    """Sees whole events last and may change them; `None` leaves them."""
    renamed: Renaming | None = None
    """Puts the name that the client asked for back into whole events; `None` leaves them."""
    is_open: bool = False
    """The client has the begin of this stream from an earlier attempt."""


class Relay(Collected):
    """Streams to one client; knows what it needs to be billed."""

    def __init__(self, client: Connection, engine: Engine, terms: RelayTerms) -> None:
        super().__init__()
        self.streamed = False
        """Bytes went to the client, so no other endpoint can be tried."""
        self.events = 0
        """Events seen; about one per token."""
        self.has_failed = False
        """The engine itself said in its stream that it failed."""
        self._client = client
        self._engine = engine
        self._terms = terms
        self._is_stream = False
        self._content_type = EVENT_STREAM
        self._partial = b""
        self._first_usage = self._last_usage = b""
        """Events: Anthropic tells the prompt in the first one and the output in the last."""
        self._reported = 0

    def on_head(self, status: int, headers: Headers, source: UpstreamConnection) -> None:
        super().on_head(status, headers, source)
        self._content_type = headers.get(b"content-type", b"")
        self._is_stream = status == 200 and self._content_type.startswith(EVENT_STREAM)
        if self._is_stream:
            self._client.producer = source
            if self._client.paused:
                source.pause_reading()

    def on_data(self, data: bytes) -> None:
        if not self._is_stream:
            super().on_data(data)
            return
        if not self.streamed:
            self.streamed = True
            self._terms.on_first()
            if not self._terms.is_open:
                self._client.open_stream(
                    200, content_type=self._content_type, headers=self.header_lines()
                )
        events = self._whole_events(data)
        if _ENGINE_ERROR in events:
            self.has_failed = True
            if self._terms.told:
                events = events[: events.index(_ENGINE_ERROR)]
        self._tell(events)
        if self.has_failed and self._terms.told and self._source:
            self._source.give_up("ended the stream with an error")

    def header_lines(self) -> bytes:
        """Header lines of the client's answer."""
        return self._terms.answer_headers

    def on_end(self) -> None:
        super().on_end()
        self._client.producer = None

    def is_blocked(self) -> bool:
        return self._client.paused

    def leave(self, why: str) -> None:
        """Give the engine's stream up, if it has begun; whoever waits for it hears `why`."""
        if self.streamed and self._source:
            self._source.give_up(why)

    def finish(self) -> None:
        """End the client's stream as a whole one."""
        self._tell(self._partial)
        self._client.close_stream()

    def fail(self, event: bytes) -> None:
        """End the client's stream with an error event."""
        self._client.send(event)
        self._client.close_stream()

    def usage(self) -> TokenUsage | None:
        """Token counts of the last event that had any; `None` when the stream had none."""
        if not self._last_usage:
            return None
        first, last = (
            self._engine.usage(event_data(event)) for event in (self._first_usage, self._last_usage)
        )
        return merged_usage(first, last)

    def _tell(self, events: bytes) -> None:
        told, renamed = self._terms.told, self._terms.renamed
        if told and events:
            events = told(events)
        self._client.send(renamed.answer(events) if renamed else events)

    def _whole_events(self, data: bytes) -> bytes:
        """Cut after the last whole event and keep the rest for the next part."""
        if self._partial:
            data = self._partial + data
            self._partial = b""
        if not data.endswith(b"\n\n"):
            cut = _end_of_last_event(data)
            self._partial = data[cut:]
            data = data[:cut]
            if len(self._partial) > PARTIAL_EVENT_BYTES:
                data, self._partial = data + self._partial, b""
        events = data.count(b"\n\n") or data.count(b"\r\n\r\n")
        self.events += events
        if self.events - self._reported >= TOKENS_PER_REPORT:
            self._terms.on_tokens(self.events - self._reported)
            self._reported = self.events
        return self._metered(data) if b'"usage"' in data else data

    def _metered(self, data: bytes) -> bytes:
        """Note the usage event; inside JSON text a quote is escaped, so the match is a member."""
        separator = b"\r\n\r\n" if data.endswith(b"\r\n\r\n") else b"\n\n"
        kept = []
        for event in data.split(separator):
            shown = event
            if _USAGE.search(event):
                self._first_usage = self._first_usage or event
                self._last_usage = event
                shown = self._corrected(event)
                if self._terms.hide_usage and _NO_CHOICES.search(event):
                    continue
            kept.append(shown)
        return separator.join(kept)

    def _corrected(self, event: bytes) -> bytes:
        cached = self._terms.cached_tokens()
        return event if cached is None else with_cached_tokens(event, cached)


def event_data(event: bytes) -> bytes:
    """What an event says, without its field names."""
    return b"".join(line[5:] for line in event.splitlines() if line.startswith(b"data:"))


def _end_of_last_event(data: bytes) -> int:
    """Position behind the last blank line; 0 when no event is complete."""
    ends = [data.rfind(mark) + len(mark) for mark in (b"\n\n", b"\r\n\r\n") if mark in data]
    return max(ends, default=0)


def with_cached_tokens(answer: bytes, cached_tokens: int) -> bytes:
    """Replace the number behind the last `cached_tokens` member, if the answer has one."""
    found = None
    for match in _CACHED.finditer(answer):
        found = match
    if found is None:
        return answer
    return b"%b%b%d%b" % (
        answer[: found.start()],
        found[1],
        cached_tokens,
        answer[found.end() :],
    )
