"""The prompt in a body, as pieces in the order in which chat templates render them.

The same conversation gives the same pieces over chat, Responses and Anthropic messages, so that
they share one cache knowledge: tools first, then role and content of each message. Media enter by
their content (see `media`).
"""

import struct
from typing import Any, TypeVar

import msgspec

from routing.core.bodies import media
from routing.core.bodies.wire import (
    Chat,
    Common,
    Completion,
    Content,
    Embedding,
    Item,
    Message,
    Messages,
    Part,
    RequestError,
    Responses,
    TextPart,
    Tool,
    ToolCall,
)

_Value = TypeVar("_Value")

_TEXT = msgspec.json.Decoder(TextPart)
_PART = msgspec.json.Decoder(str | Part)
_TOOL = msgspec.json.Decoder(Tool)
_TOOL_CALL = msgspec.json.Decoder(ToolCall)
_ITEM = msgspec.json.Decoder(Item)
_CONTENT = msgspec.json.Decoder(Content)
_MEDIA = (
    ("image_url", "image"),
    ("video_url", "video"),
    ("audio_url", "audio"),
    ("input_audio", "audio"),
    ("file", "file"),
    ("source", "image"),
    ("file_data", "file"),
    ("file_url", "file"),
    ("file_id", "file"),
)
MOST_MEDIA = 999
"""vLLM's own default of `--limit-mm-per-prompt`. Each stands for up to 256 kB of prompt."""
_TEXT_TYPES = ("text", "input_text", "output_text", "refusal", "thinking")


class Pieces:
    """Collects what a prompt consists of."""

    def __init__(self, *, bytes_per_token: float) -> None:
        self.parts: list[str | bytes] = []
        self.ids = 0
        """Token ids among the parts, four little-endian bytes each."""
        self.has_text = False
        self.is_multimodal = False
        self._bytes_per_token = bytes_per_token
        self._media = 0

    def text(self, text: str | bytes) -> None:
        """Add text, or bytes that stand for themselves."""
        self.has_text = True
        self.parts.append(text)

    def turn(self, role: str, text: str) -> None:
        """Add a message that is nothing but text."""
        self.has_text = True
        self.parts += (role, text)

    def token_ids(self, ids: list[int]) -> None:
        """Add a prompt that came as ids."""
        self.ids += len(ids)
        self.parts.append(_id_bytes(ids))

    def media(self, kind: str, value: bytes | str) -> None:
        """Add a picture, sound, video or file."""
        self.is_multimodal = True
        self._media += 1
        if self._media > MOST_MEDIA:
            raise RequestError(
                f"A prompt may have {MOST_MEDIA} pictures, sounds, videos and files; this one has "
                "more. Send them in several requests."
            )
        self.text(media.piece(kind, value, bytes_per_token=self._bytes_per_token))

    def content(self, content: Content) -> None:
        """Add a message's content, whole or in parts."""
        if isinstance(content, str):
            self.text(content)
        elif content is not None:
            for raw in content:
                # Most parts are text and are read with its two members alone.
                plain = _read(_TEXT, raw)
                if plain is not None and plain.text:
                    self.text(plain.text)
                else:
                    self._raw_part(raw)

    def _raw_part(self, raw: msgspec.Raw) -> None:
        part = _read(_PART, raw)
        if isinstance(part, str):
            self.text(part)
        elif part is None or not self.part(part):
            self.text(bytes(raw))

    def part(self, part: Part) -> bool:
        """Add one part of a content; false when its kind is unknown here."""
        said = part.text or part.refusal or part.thinking
        if said:
            self.text(said)
        elif part.type == "tool_use":
            self.call(part.id, part.name, bytes(part.input))
        elif part.type == "tool_result":
            self.content(_decoded(part.content))
        else:
            return part.type in _TEXT_TYPES or self._medium(part)
        return True

    def _medium(self, part: Part) -> bool:
        for name, kind in _MEDIA:
            value = getattr(part, name)
            if value:
                self.media(kind, value if isinstance(value, str) else bytes(value))
                return True
        return False

    def call(self, call_id: str | None, name: str | None, arguments: bytes) -> None:
        """Add the call of a tool; its arguments are an object or a text that holds one."""
        self.text(call_id or "")
        self.text(name or "")
        self.text(_normal(arguments))

    def tools(self, tools: list[msgspec.Raw] | None) -> None:
        """Add the tools on offer; templates render them before the conversation."""
        for raw in tools or ():
            tool = _read(_TOOL, raw)
            stated = tool and (tool.function or tool)
            if not tool or not stated or not stated.name:
                self.text(bytes(raw))
                continue
            self.text(stated.name)
            self.text(stated.description or "")
            self.text(bytes(stated.parameters or tool.input_schema))
            if stated.strict:
                self.text(bytes(stated.strict))

    def message(self, message: Message) -> None:
        """Add a message; what tools answered in Anthropic's form are messages of their own."""
        content = message.content
        if isinstance(content, list):
            others = []
            for raw in content:
                if b"tool_result" in bytes(raw) and _is_result(raw):
                    self.text("tool")
                    self.content([raw])
                else:
                    others.append(raw)
            if content and not others:
                return
            content = others
        self.text(message.role)
        self.content(content)
        for raw in message.tool_calls or ():
            call = _read(_TOOL_CALL, raw)
            if call and call.function:
                self.call(call.id, call.function.name, bytes(call.function.arguments))
            else:
                self.text(bytes(raw))

    def item(self, raw: msgspec.Raw) -> None:
        """Add an item of a Responses input."""
        item = _read(_ITEM, raw)
        if item is None:
            self.text(bytes(raw))
        elif item.type == "function_call":
            self.text("assistant")
            self.call(item.call_id, item.name, bytes(item.arguments))
        elif item.type == "function_call_output":
            self.text("tool")
            self.content(item.output)
        elif item.content is not None and item.type == "message":
            self.text(item.role or "assistant")
            self.content(item.content)
        else:
            self.text(bytes(raw))


def _read(decoder: msgspec.json.Decoder[_Value], raw: msgspec.Raw) -> _Value | None:
    """A nested value, or `None` for one of another shape: the engine judges it, not the router."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_result(raw: msgspec.Raw) -> bool:
    part = _read(_PART, raw)
    return isinstance(part, Part) and part.type == "tool_result"


def _decoded(raw: msgspec.Raw) -> Content:
    """A content inside a part; what has another shape stands for itself."""
    if not raw:
        return None
    found = _read(_CONTENT, raw)
    return bytes(raw).decode() if found is None else found


def _normal(arguments: bytes) -> bytes:
    """Arguments without regard to spaces, and whether they came as an object or as its text."""
    if not arguments:
        return b""
    try:
        value = msgspec.json.decode(arguments)
        if isinstance(value, str):
            value = msgspec.json.decode(value)
        return msgspec.json.encode(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return arguments


def _id_bytes(ids: list[int]) -> bytes:
    """Four little-endian bytes each, at once: one by one they took a hundred times the memory."""
    if set(map(type, ids)) <= {int}:
        try:
            return struct.pack(f"<{len(ids)}I", *ids)
        except struct.error:
            pass
    wrong = next(one for one in ids if isinstance(one, bool) or not 0 <= one < 2**32)
    raise RequestError(f"{wrong!r} is no token id; allowed are 0 to 2^32 - 1.", param="prompt")


def of_chat(fields: Chat, into: Pieces) -> None:
    """Tools, then the conversation."""
    into.tools(fields.tools)
    for message in fields.messages:
        content = message.content
        if content.__class__ is str and not message.tool_calls:
            into.turn(message.role, content)
        else:
            into.message(message)


def of_messages(fields: Messages, into: Pieces) -> None:
    """As a chat whose first message is the system prompt."""
    into.tools(fields.tools)
    system = fields.system
    if system:
        into.text("system")
        # Blocks of a system prompt are joined without anything between them.
        into.text(system if isinstance(system, str) else _joined(system))
    for message in fields.messages:
        into.message(message)


def _joined(system: list[msgspec.Raw]) -> str:
    parts = [_read(_PART, raw) for raw in system]
    return "".join(part.text or "" for part in parts if isinstance(part, Part))


def of_responses(fields: Responses, into: Pieces) -> None:
    """As a chat whose first message are the instructions."""
    into.tools(fields.tools)
    if fields.instructions:
        into.text("system")
        into.text(fields.instructions)
    if isinstance(fields.input, str):
        into.text("user")
        into.text(fields.input)
        return
    for item in fields.input:
        into.item(item)


def of_completion(fields: Completion, into: Pieces) -> None:
    """One prompt or several."""
    _inputs(fields.prompt, into, param="prompt")


def is_one_sequence(fields: Common) -> bool:
    """One prompt and one answer to it."""
    given = getattr(fields, "prompt", "")
    is_batch = isinstance(given, list) and len(given) > 1 and not is_id_list(given)
    return fields.n in (None, 1) and not is_batch


def of_embedding(fields: Embedding, into: Pieces) -> None:
    """One input or several."""
    _inputs(fields.input, into, param="input")


def _inputs(value: str | list[Any], into: Pieces, *, param: str) -> None:
    if isinstance(value, str):
        into.text(value)
        return
    if not value:
        raise RequestError(f"{param} is an empty list; it needs at least one element.", param=param)
    if is_id_list(value):
        into.token_ids(value)
        return
    for item in value:
        if isinstance(item, str):
            into.text(item)
        elif is_id_list(item):
            into.token_ids(item)
        else:
            raise RequestError(
                f"{param} may be a text, a list of texts, a list of token ids or a list of such "
                f"lists; an element has the type {type(item).__name__}.",
                param=param,
            )


def is_id_list(item: Any) -> bool:
    """Whether an input is a prompt in token ids."""
    return isinstance(item, list) and set(map(type, item)) <= {int, bool}
