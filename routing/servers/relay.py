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

from routing.engines.base import Engine, TokenUsage
from routing.servers.http import Connection
from routing.servers.upstream import Collected, Headers, UpstreamConnection

EVENT_STREAM = b"text/event-stream"
PARTIAL_EVENT_BYTES = 1024 * 1024
TOKENS_PER_REPORT = 8

_USAGE = re.compile(rb'"usage":\s*\{')
_NO_CHOICES = re.compile(rb'"choices":\s*\[\s*\]')
_CACHED = re.compile(rb'("cached_tokens":\s*)(?:\d+|null)')


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayTerms:
    """What a relay must do to the answer, and whom it tells."""

    answer_headers: bytes
    hide_usage: bool
    """The client did not ask for the usage event."""
    cached_tokens: int | None
    """The prefill engine's own count; `None` leaves the answer's."""
    on_first: Callable[[], None]
    on_tokens: Callable[[int], None]


class Relay(Collected):
    """Streams to one client; knows what it needs to be billed."""

    def __init__(self, client: Connection, engine: Engine, terms: RelayTerms) -> None:
        super().__init__()
        self.streamed = False
        """Bytes went to the client, so no other endpoint can be tried."""
        self.events = 0
        """Events seen; about one per token."""
        self._client = client
        self._engine = engine
        self._terms = terms
        self._is_stream = False
        self._content_type = EVENT_STREAM
        self._partial = b""
        self._usage_event = b""
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
            self._client.open_stream(
                200, content_type=self._content_type, headers=self._terms.answer_headers
            )
        self._client.send(self._whole_events(data))

    def on_end(self) -> None:
        super().on_end()
        self._client.producer = None

    def is_blocked(self) -> bool:
        return self._client.paused

    def finish(self) -> None:
        """End the client's stream as a whole one."""
        self._client.send(self._partial)
        self._client.close_stream()

    def fail(self, event: bytes) -> None:
        """End the client's stream with an error event."""
        self._client.send(event)
        self._client.close_stream()

    def usage(self) -> TokenUsage | None:
        """Token counts of the last event that had any; `None` when the stream had none."""
        if not self._usage_event:
            return None
        data = b"".join(
            line[5:] for line in self._usage_event.splitlines() if line.startswith(b"data:")
        )
        return self._engine.usage(data)

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
                self._usage_event = event
                shown = self._corrected(event)
                if self._terms.hide_usage and _NO_CHOICES.search(event):
                    continue
            kept.append(shown)
        return separator.join(kept)

    def _corrected(self, event: bytes) -> bytes:
        cached = self._terms.cached_tokens
        return event if cached is None else with_cached_tokens(event, cached)


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
