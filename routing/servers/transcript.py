"""What a client was told so far: text, token ids and counts, read from the events of its stream.

Kept only where a pool lets broken streams go on. Events are collected as they came and read a few
kilobytes at a time, so that an ordinary event costs an append and a long answer is kept as its text
alone. The text stays in memory; it enters no record, log or error.
"""

import msgspec

READ_BYTES = 16 * 1024
"""Events that are collected before they are read."""
MOST_BYTES = 8 * 1024 * 1024
"""An answer that is longer than this is not kept, so its stream cannot go on."""

_NOTHING = (b"null", b"[]", b"{}")


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: msgspec.Raw = msgspec.Raw(b"null")
    function_call: msgspec.Raw = msgspec.Raw(b"null")


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class _Event(msgspec.Struct):
    id: str | None = None
    created: int | None = None
    choices: list[_Choice] = []
    usage: _Usage | None = None
    prompt_token_ids: list[int] | None = None


_EVENT = msgspec.json.Decoder(_Event)


def event_data(events: bytes) -> list[bytes]:
    """The data of each event, in order; comments and fields of other names are left out."""
    if b"\r" in events:
        events = events.replace(b"\r\n", b"\n")
    found = []
    for event in events.split(b"\n\n"):
        lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
        if lines:
            found.append(b"\n".join(lines))
    return found


class Transcript:
    """Reads events with one choice; the properties say what has come until now."""

    def __init__(self) -> None:
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._bytes = 0
        self._text: list[str] = []
        self._ids: list[int] = []
        self._prompt_ids: list[int] | None = None
        self._tokens = 0
        self._has_all_ids = True
        self._id: str | None = None
        self._created: int | None = None
        self._finish_reason: str | None = None
        self._is_done = False
        self._is_plain = True
        self._has_reasoning = False
        self._is_too_long = False

    def add(self, events: bytes) -> None:
        """Take whole events."""
        self._unread.append(events)
        self._unread_bytes += len(events)
        if self._unread_bytes >= READ_BYTES:
            self.read()

    def read(self) -> None:
        """Bring the properties up to date."""
        events, self._unread, self._unread_bytes = b"".join(self._unread), [], 0
        if self._is_too_long:
            return
        for data in event_data(events):
            self._read_event(data)
        if self._bytes > MOST_BYTES:
            self._is_too_long = True
            self._text.clear()
            self._ids.clear()

    @property
    def text(self) -> str:
        """All text of the answer."""
        return "".join(self._text)

    @property
    def tokens(self) -> int:
        """Tokens of the answer: by their ids where they came, else one for each event of text."""
        return self._tokens

    @property
    def ids(self) -> list[int] | None:
        """Token ids of prompt and answer; `None` unless every one of them came."""
        if self._prompt_ids is None or not self._has_all_ids:
            return None
        return self._prompt_ids + self._ids

    @property
    def head(self) -> tuple[str | None, int | None]:
        """`id` and `created` of the first event: all events of a stream have the same."""
        return self._id, self._created

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended, once it did."""
        return self._finish_reason

    @property
    def is_done(self) -> bool:
        """The mark of the stream's end came."""
        return self._is_done

    @property
    def can_go_on(self) -> bool:
        """The rest can be asked for: plain text, whole, and no tool call half written."""
        return self._is_plain and not self._is_too_long

    @property
    def has_reasoning(self) -> bool:
        """Part of what the model wrote was shown as reasoning and is not in `text`."""
        return self._has_reasoning

    def _read_event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._is_done = True
            return
        try:
            event = _EVENT.decode(data)
        except msgspec.DecodeError:
            self._is_plain = False
            return
        if self._id is None:
            self._id, self._created = event.id, event.created
        self._prompt_ids = self._prompt_ids or event.prompt_token_ids
        for choice in event.choices:
            self._read_choice(choice)

    def _read_choice(self, choice: _Choice) -> None:
        delta, text = choice.delta, choice.text
        is_thought = False
        if delta is not None:
            text = delta.content
            is_thought = bool(delta.reasoning or delta.reasoning_content)
            self._has_reasoning |= is_thought
            calls = bytes(delta.tool_calls), bytes(delta.function_call)
            self._is_plain &= all(call in _NOTHING for call in calls)
        self._is_plain &= choice.index == 0
        self._finish_reason = choice.finish_reason or self._finish_reason
        self._prompt_ids = self._prompt_ids or choice.prompt_token_ids
        if choice.token_ids is not None:
            self._ids += choice.token_ids
            self._tokens += len(choice.token_ids)
            self._bytes += 8 * len(choice.token_ids)
        elif text or is_thought:
            self._tokens += 1
            self._has_all_ids = False
        if text:
            self._text.append(text)
            self._bytes += len(text)
