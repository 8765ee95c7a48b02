"""From a body to what a chat template takes, as engines read it.

Every API that carries a conversation gives the same messages: Anthropic's blocks and the items of
Responses become messages of a chat, as vLLM 0.32 converts them. What cannot be known from text
alone, such as pictures, is not plain and says why.
"""

from typing import Any

import msgspec

Message = dict[str, Any]

MOST_MESSAGES = 2000
MOST_BYTES = 4 * 1024 * 1024
"""Larger bodies would hold up every other request while they are rendered."""
_TEXT_TYPES = ("text", "input_text", "output_text")


class NotPlainError(Exception):
    """The prompt cannot be told from its text; `reason` is a word for records."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """What a chat template is rendered with. Contents are texts."""

    messages: list[Message]
    tools: list[Message] | None = None
    options: dict[str, Any] = {}
    """Further variables that the body sets."""
    is_open: bool = True
    """The opening of the assistant's turn is added."""


class _Chat(msgspec.Struct):
    messages: list[Message]
    tools: list[Message] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    chat_template: str | None = None
    documents: list[Any] | None = None
    reasoning_effort: str | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    add_special_tokens: bool = False
    truncate_prompt_tokens: int | None = None


class _Anthropic(msgspec.Struct):
    messages: list[Message]
    system: str | list[Message] | None = None
    tools: list[Message] | None = None


class _Responses(msgspec.Struct):
    input: str | list[Message]
    instructions: str | None = None
    tools: list[Message] | None = None
    previous_response_id: str | None = None


_CHAT = msgspec.json.Decoder(_Chat)
_ANTHROPIC = msgspec.json.Decoder(_Anthropic)
_RESPONSES = msgspec.json.Decoder(_Responses)


def conversation_of(path: str, body: bytes) -> Conversation:
    """Read a body that has been checked before. Raises NotPlainError."""
    check_size(len(body), 0)
    try:
        found = _READERS[path](body)
    except KeyError:
        raise NotPlainError("no-conversation") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotPlainError("unknown-shape") from None
    check_size(len(body), len(found.messages))
    return found


def check_size(body_bytes: int, messages: int) -> None:
    """Raise NotPlainError for what would take too long to render."""
    if body_bytes > MOST_BYTES or messages > MOST_MESSAGES:
        raise NotPlainError("too-large-to-render")


def _chat(body: bytes) -> Conversation:
    fields = _CHAT.decode(body)
    special = (fields.chat_template, fields.documents, fields.truncate_prompt_tokens)
    if any(value is not None for value in special) or fields.add_special_tokens:
        raise NotPlainError("own-template")
    if fields.continue_final_message:
        raise NotPlainError("continued-message")
    options = dict(fields.chat_template_kwargs or {})
    if fields.reasoning_effort is not None:
        options.setdefault("reasoning_effort", fields.reasoning_effort)
    return Conversation(
        messages=[_message(message) for message in fields.messages],
        tools=fields.tools or None,
        options=options,
        is_open=fields.add_generation_prompt,
    )


def _message(message: Message) -> Message:
    """A message with its content as text and the arguments of its calls as objects."""
    content = message.get("content")
    found = {"role": message.get("role")}
    found["content"] = content if isinstance(content, str) else _text(content)
    for name in ("name", "tool_call_id", "reasoning", "reasoning_content"):
        if isinstance(message.get(name), str):
            found[name] = message[name]
    calls = message.get("tool_calls")
    if calls:
        found["tool_calls"] = [_call(call) for call in calls]
    return found


def _text(content: Any) -> str:
    """Text parts, joined as engines join them."""
    if content is None:
        return ""
    texts = []
    for part in content if isinstance(content, list) else (content,):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type", "text") in _TEXT_TYPES:
            texts.append(str(part.get("text", "")))
        else:
            raise NotPlainError("multimodal")
    return "\n".join(texts)


def _call(call: Any) -> Message:
    try:
        function = call["function"]
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            arguments = msgspec.json.decode(arguments) if arguments else {}
    except (TypeError, KeyError, AttributeError, msgspec.DecodeError, RecursionError):
        raise NotPlainError("unknown-shape") from None
    return {**call, "function": {**function, "arguments": arguments or {}}}


def _anthropic(body: bytes) -> Conversation:
    fields = _ANTHROPIC.decode(body)
    messages: list[Message] = []
    system = fields.system
    if system:
        text = system if isinstance(system, str) else "".join(_text([part]) for part in system)
        messages.append({"role": "system", "content": text})
    for message in fields.messages:
        messages.extend(_blocks(message))
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.get("name"),
                "description": tool.get("description"),
                "parameters": tool.get("input_schema"),
            },
        }
        for tool in fields.tools or ()
    ]
    return Conversation(messages=messages, tools=tools or None)


def _blocks(message: Message) -> list[Message]:
    """One message of Anthropic's; what tools answered become messages before it."""
    role, content = message.get("role"), message.get("content")
    if not isinstance(content, list):
        return [{"role": role, "content": _text(content)}]
    before, texts, calls = [], [], []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result":
            answered = {"tool_call_id": block.get("tool_use_id", "")}
            before.append({"role": "tool", "content": _text(block.get("content"))} | answered)
        elif kind == "tool_use":
            function = {"name": block.get("name"), "arguments": block.get("input") or {}}
            calls.append({"id": block.get("id"), "type": "function", "function": function})
        else:
            texts.append(block)
    if not texts and not calls:
        return before
    own: Message = {"role": role, "content": _text(texts)}
    if calls:
        own["tool_calls"] = calls
    return [*before, own]


def _responses(body: bytes) -> Conversation:
    fields = _RESPONSES.decode(body)
    if fields.previous_response_id is not None:
        raise NotPlainError("previous-response")
    messages: list[Message] = []
    if fields.instructions:
        messages.append({"role": "system", "content": fields.instructions})
    if isinstance(fields.input, str):
        messages.append({"role": "user", "content": fields.input})
    else:
        messages.extend(_item(item) for item in fields.input)
    tools = [
        {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
        for tool in fields.tools or ()
    ]
    return Conversation(messages=messages, tools=tools or None)


def _item(item: Message) -> Message:
    if item.get("type", "message") != "message":
        # Each engine has its own way to render calls and reasoning of Responses.
        raise NotPlainError("responses-item")
    return {"role": item.get("role"), "content": _text(item.get("content"))}


_READERS = {
    "/v1/chat/completions": _chat,
    "/v1/messages": _anthropic,
    "/v1/responses": _responses,
}
