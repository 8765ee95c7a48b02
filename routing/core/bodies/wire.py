"""The fields of request bodies that are read, one struct for each API.

Only what is named here is decoded and checked; the rest is the engine's business and stays in the
bytes that are forwarded. Of equal names the last one counts, as in the engines.
"""

from typing import Any

import msgspec

MOST_OUTPUT_TOKENS = 2**31 - 1
"""Engines count in 32 bits; a number without bound would not fit into a float either."""

ABSENT = msgspec.Raw(b"")


class RequestError(Exception):
    """The client's request is wrong; the fields are those of OpenAI's error object."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "BadRequestError",  # noqa: A002 - the wire name
        param: str | None = None,
        code: int | str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = status if code is None else code


class StreamOptions(msgspec.Struct):
    """`stream_options`."""

    include_usage: bool | None = None


class Common(msgspec.Struct):
    """Members that every API has, or that do no harm where an API lacks them."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    n: int | None = None
    user: str | None = None
    cache_salt: str | None = None
    logprobs: bool | int | None = None
    top_logprobs: int | None = None
    # Members that tell an engine to fetch KV from an address: the router's alone to set.
    kv_transfer_params: msgspec.Raw = ABSENT
    ec_transfer_params: msgspec.Raw = ABSENT
    bootstrap_host: msgspec.Raw = ABSENT
    bootstrap_port: msgspec.Raw = ABSENT
    bootstrap_room: msgspec.Raw = ABSENT


ROUTER_MEMBERS = (
    "kv_transfer_params",
    "ec_transfer_params",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
)


class TextPart(msgspec.Struct):
    """A part of a message's content that is text."""

    text: str | None = None


class Part(msgspec.Struct):
    """A part of a message's content, in the words of OpenAI and of Anthropic."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    thinking: str | None = None
    image_url: msgspec.Raw = ABSENT
    video_url: msgspec.Raw = ABSENT
    audio_url: msgspec.Raw = ABSENT
    input_audio: msgspec.Raw = ABSENT
    file: msgspec.Raw = ABSENT
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    source: msgspec.Raw = ABSENT
    """Anthropic's image or document."""
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = ABSENT
    content: msgspec.Raw = ABSENT
    """What a tool answered, in Anthropic's `tool_result`."""


Content = str | list[msgspec.Raw] | None
"""Parts are read one by one, so that one of a shape unknown here stands for itself."""


class Function(msgspec.Struct):
    """A function of a tool, offered or called."""

    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = ABSENT
    arguments: msgspec.Raw = ABSENT
    strict: msgspec.Raw = ABSENT


class ToolCall(msgspec.Struct):
    """A call that the assistant made."""

    id: str | None = None
    function: Function | None = None


class Tool(msgspec.Struct):
    """A tool that is offered: chat nests the function, Responses and Anthropic do not."""

    function: Function | None = None
    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = ABSENT
    input_schema: msgspec.Raw = ABSENT
    strict: msgspec.Raw = ABSENT


class Message(msgspec.Struct):
    """One message of a chat."""

    role: str
    content: Content = None
    tool_calls: list[msgspec.Raw] | None = None
    name: msgspec.Raw = ABSENT
    tool_call_id: msgspec.Raw = ABSENT
    reasoning: msgspec.Raw = ABSENT
    reasoning_content: msgspec.Raw = ABSENT


class Chat(Common, kw_only=True):
    """`/v1/chat/completions`."""

    messages: list[Message]
    max_completion_tokens: int | None = None
    tools: list[msgspec.Raw] | None = None
    chat_template: msgspec.Raw = ABSENT
    chat_template_kwargs: msgspec.Raw = ABSENT
    documents: msgspec.Raw = ABSENT
    reasoning_effort: msgspec.Raw = ABSENT
    add_generation_prompt: msgspec.Raw = ABSENT
    continue_final_message: msgspec.Raw = ABSENT
    add_special_tokens: msgspec.Raw = ABSENT
    truncate_prompt_tokens: msgspec.Raw = ABSENT


_TEMPLATE_MEMBERS = (
    "tools",
    "chat_template",
    "chat_template_kwargs",
    "documents",
    "reasoning_effort",
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
    "truncate_prompt_tokens",
)


class Completion(Common, kw_only=True):
    """`/v1/completions`."""

    prompt: str | list[Any]


class Embedding(Common, kw_only=True):
    """`/v1/embeddings`."""

    input: str | list[Any]


class Item(msgspec.Struct):
    """An item of a Responses input: a message, a call of a tool, its output or a reasoning."""

    type: str = "message"
    role: str | None = None
    content: Content = None
    call_id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = ABSENT
    output: Content = None


class Responses(Common, kw_only=True):
    """`/v1/responses`."""

    input: str | list[msgspec.Raw]
    instructions: str | None = None
    max_output_tokens: int | None = None
    tools: list[msgspec.Raw] | None = None
    previous_response_id: str | None = None


class Messages(Common, kw_only=True):
    """Anthropic's `/v1/messages`."""

    messages: list[Message]
    system: Content = None
    tools: list[msgspec.Raw] | None = None


Turns = list[dict[str, str]]
"""Messages of a conversation, with role and content."""


def plain_turns(fields: Common) -> Turns | None:
    """A conversation of texts without anything else that a template could render, else `None`."""
    if isinstance(fields, Chat):
        options = (getattr(fields, name) for name in _TEMPLATE_MEMBERS)
        return None if any(options) else _turns(fields.messages)
    if isinstance(fields, Messages) and isinstance(fields.system, str | None) and not fields.tools:
        turns = _turns(fields.messages)
        if turns is not None and fields.system:
            turns.insert(0, {"role": "system", "content": fields.system})
        return turns
    return None


def _turns(messages: list[Message]) -> Turns | None:
    turns = []
    for message in messages:
        content = message.content
        if content.__class__ is not str or message.tool_calls or message.name:
            return None
        if message.tool_call_id or message.reasoning or message.reasoning_content:
            return None
        turns.append({"role": message.role, "content": content})
    return turns


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Decode and check a body. Raises RequestError."""
    try:
        # Members that are not read here must be text, too: they are copied to engines.
        body.decode()
        fields = decoder.decode(body)
    except RecursionError as error:
        raise RequestError("The body is nested too deeply to be read.") from error
    except msgspec.ValidationError as error:
        raise _invalid(error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"The body is not JSON: {error}.") from error
    _check(fields)
    return fields


def _invalid(error: msgspec.ValidationError) -> RequestError:
    message, _, path = str(error).partition(" - at `$")
    param = path.rstrip("`").lstrip(".") or None
    return RequestError(f"{message}.", param=param or _missing(message))


def _missing(message: str) -> str | None:
    before, _, name = message.partition("missing required field `")
    return name.rstrip("`") if name and before else None


def _check(fields: Common) -> None:
    maximum = max_tokens(fields)
    if maximum is not None and not 1 <= maximum <= MOST_OUTPUT_TOKENS:
        raise RequestError(
            f"max_tokens is out of range; allowed are 1 to {MOST_OUTPUT_TOKENS}.",
            param="max_tokens",
        )
    if fields.n is not None and not 1 <= fields.n <= 128:
        raise RequestError(f"n is {fields.n}; allowed are 1 to 128.", param="n")


def max_tokens(fields: Any) -> int | None:
    """The limit of the output; the newer name wins."""
    for name in ("max_completion_tokens", "max_output_tokens"):
        value: int | None = getattr(fields, name, None)
        if value is not None:
            return value
    shared: int | None = fields.max_tokens
    return shared
