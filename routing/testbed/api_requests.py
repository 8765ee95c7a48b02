"""Bodies of completion requests: read, checked, turned into sequences; errors in vLLM's form."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import xxhash

from routing.testbed import tokens as tk
from routing.testbed import tools
from routing.testbed.errors import ApiError, flag, mapping, number, text, type_error
from routing.testbed.logprobs import MOST_TOP
from routing.testbed.sequence import RemoteKv, Sequence
from routing.testbed.settings import EngineSettings
from routing.testbed.tools import ToolCall

MOST_CHOICES = 128
MOST_STOPS = 16
STOP_CHARACTERS = 200
MEDIA_DIGESTS = 32
"""Times that the digest of a picture stands for it: 256 tokens."""
_MEDIA = ("image_url", "input_audio", "audio_url", "video_url", "file", "source")


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the ends of a pair of SGLang find each other."""

    host: str
    port: int
    room: int

    @property
    def name(self) -> str:
        """Under which the prompt is held."""
        return f"room-{self.room}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a client asked for, checked."""

    chat: bool
    tokens: "array[int]"
    salt: str | None
    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    return_token_ids: bool
    transfer: Mapping[str, Any] | None
    meeting: Meeting | None
    adapter: str | None = None
    """LoRA adapter that answers."""
    choices: int = 1
    stops: tuple[str, ...] = ()
    logprobs: int | None = None
    """Likeliest tokens told for each of the answer; `None` tells no log-probabilities."""
    call: ToolCall | None = None
    """The answer, where it is no words."""

    @property
    def is_plain(self) -> bool:
        """One answer in words, up to its own end."""
        return not (self.choices > 1 or self.stops or self.logprobs is not None or self.call)

    def sequence(self, name: str, *, block_size: int, now: float, choice: int = 0) -> Sequence:
        """The prompt as the engine model takes it. The first one gets the tokens, not a copy."""
        root = tk.root_key(self.salt, self.adapter)
        return Sequence(
            id=name,
            choice=choice,
            adapter=self.adapter,
            tokens=array("I", self.tokens) if self.choices > 1 else self.tokens,
            keys=tk.block_keys(self.tokens, block_size, root),
            root=root,
            salt=self.salt,
            max_output=self.max_tokens,
            min_output=self.min_tokens,
            ignore_eos=self.ignore_eos,
            arrived=now,
        )


def parse_json(body: bytes | bytearray) -> dict[str, Any]:
    """Decode a body that must be a JSON object. Raises ApiError."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise type_error("json_invalid", "body", f"JSON decode error: {error}", "{}") from error
    if not isinstance(value, dict):
        raise type_error("model_attributes_type", "body", "Input should be a valid dictionary", "")
    return value


def model_of(body: Mapping[str, Any], settings: EngineSettings) -> tuple[str, str | None]:
    """Name of the model, and of the adapter if it is one. Raises ApiError for another model."""
    asked = body.get("model", settings.model)
    if asked != settings.model and asked not in settings.adapters:
        served = ", ".join((settings.model, *settings.adapters))
        raise ApiError(
            f"The model `{asked}` does not exist. Valid aliases: {served}.",
            status=404,
            kind="NotFoundError",
            param="model",
        )
    return asked, None if asked == settings.model else asked


def parse_prompt(
    body: Mapping[str, Any], *, chat: bool, context_limit: int, adapter: str | None = None
) -> Prompt:
    """Read a completion or chat request. Raises ApiError naming the field that is wrong."""
    tokens = chat_tokens(body) if chat else completion_tokens(body)
    options = mapping(body, "stream_options") or {}
    stream = flag(body, "stream")
    return Prompt(
        chat=chat,
        tokens=tokens,
        salt=text(body, "cache_salt"),
        max_tokens=_output_limit(body, tokens=len(tokens), context_limit=context_limit),
        min_tokens=number(body, "min_tokens") or 0,
        ignore_eos=flag(body, "ignore_eos"),
        stream=stream,
        include_usage=stream and bool(options.get("include_usage")),
        continuous_usage=stream and bool(options.get("continuous_usage_stats")),
        return_token_ids=flag(body, "return_token_ids"),
        transfer=mapping(body, "kv_transfer_params"),
        meeting=_meeting(body),
        adapter=adapter,
        choices=_bounded(body, "n", 1, MOST_CHOICES) or 1,
        stops=_stops(body),
        logprobs=_logprobs(body, chat=chat),
        call=tools.chosen(body) if chat else None,
    )


def _meeting(body: Mapping[str, Any]) -> Meeting | None:
    room = number(body, "bootstrap_room")
    if room is None:
        return None
    host, port = text(body, "bootstrap_host"), number(body, "bootstrap_port")
    if host is None or port is None:
        raise ApiError(
            "A bootstrap_room needs bootstrap_host and bootstrap_port.", param="bootstrap_room"
        )
    return Meeting(host, port, room)


def remote_kv(transfer: Mapping[str, Any], *, prompt_tokens: int) -> RemoteKv:
    """Where the KV of a decode leg lies. Raises ApiError when a field is absent or not its type."""
    expected: dict[str, type] = {
        "remote_engine_id": str,
        "remote_request_id": str,
        "remote_host": str,
        "remote_port": int,
        "remote_block_ids": list,
    }
    for name, kind in expected.items():
        if not isinstance(transfer.get(name), kind):
            raise ApiError(
                f"kv_transfer_params.{name} is {transfer.get(name)!r}; a decode leg needs what the "
                "prefill answer gave, unchanged.",
                param="kv_transfer_params",
            )
    return RemoteKv(
        engine_id=transfer["remote_engine_id"],
        request_id=transfer["remote_request_id"],
        host=transfer["remote_host"],
        port=transfer["remote_port"],
        tokens=prompt_tokens,
    )


def chat_tokens(body: Mapping[str, Any]) -> "array[int]":
    """Tokens of `messages` after the chat template. Raises ApiError."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise type_error("list_type", "body.messages", "Input should be a valid list", messages)
    if not messages:
        raise ApiError("messages is empty; at least one message is needed.", param="messages")
    turns = [_turn(message, index) for index, message in enumerate(messages)]
    tools = body.get("tools")
    if tools:
        turns.insert(0, ("tools", orjson.dumps(tools).decode()))
    if not flag(body, "continue_final_message"):
        return tk.tokenize(tk.chat_segments(turns))
    if body.get("add_generation_prompt", True):
        raise ApiError(
            "Cannot set both `continue_final_message` and `add_generation_prompt` to True.",
            param="continue_final_message",
        )
    return tk.tokenize(tk.chat_segments(turns, answer=False, is_open=True))


def _turn(message: object, index: int) -> tuple[str, str]:
    where = f"body.messages.{index}"
    if not isinstance(message, dict):
        raise type_error("dict_type", where, "Input should be a valid dictionary", message)
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str):
        raise type_error("missing", f"{where}.role", "Field required", message)
    if content is None:
        content = orjson.dumps(message["tool_calls"]).decode() if "tool_calls" in message else ""
    if isinstance(content, list):
        content = "".join(map(_part, content))
    if not isinstance(content, str):
        raise type_error("string_type", f"{where}.content", "Input should be a string", content)
    return role, content


def _part(part: object) -> str:
    """Text of a part of a content; a picture or a sound is a few tokens that are its own."""
    if not isinstance(part, dict):
        return str(part)
    medium = next((part[name] for name in _MEDIA if part.get(name) is not None), None)
    if medium is None:
        return str(part.get("text", ""))
    digest = xxhash.xxh3_128_hexdigest(orjson.dumps(medium))
    return f"<|media|>{digest * MEDIA_DIGESTS}"


def completion_tokens(body: Mapping[str, Any]) -> "array[int]":
    """Tokens of one `prompt`, be it text or ids. Raises ApiError."""
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        if not prompt:
            raise ApiError("prompt is empty; at least one token is needed.", param="prompt")
        return tk.tokenize([prompt.encode("utf-8", "surrogatepass")])
    if isinstance(prompt, list) and prompt:
        try:
            return array("I", prompt)
        except (TypeError, OverflowError) as error:
            raise type_error("int_type", "body.prompt", str(error), prompt[0]) from error
    raise type_error("string_type", "body.prompt", "Input should be a valid string", prompt)


def _bounded(body: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    value = number(body, name)
    if value is not None and not least <= value <= most:
        raise ApiError(f"{name} is {value}; it must be {least} to {most}.", param=name)
    return value


def _stops(body: Mapping[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop")
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or not all(isinstance(one, str) for one in stops):
        raise type_error("string_type", "body.stop", "Input should be a valid string", stop)
    if len(stops) > MOST_STOPS or any(not 0 < len(one) <= STOP_CHARACTERS for one in stops):
        raise ApiError(
            f"stop holds up to {MOST_STOPS} strings of 1 to {STOP_CHARACTERS} characters.",
            param="stop",
        )
    return tuple(stops)


def _logprobs(body: Mapping[str, Any], *, chat: bool) -> int | None:
    if not chat:
        return _bounded(body, "logprobs", 0, MOST_TOP)
    top = _bounded(body, "top_logprobs", 0, MOST_TOP)
    if not flag(body, "logprobs"):
        if top:
            raise ApiError("top_logprobs needs logprobs to be true.", param="top_logprobs")
        return None
    return top or 0


def check_length(tokens: int, context_limit: int) -> None:
    """Raise ApiError for a prompt that leaves no room for an answer."""
    if tokens >= context_limit:
        raise ApiError(
            f"This model's maximum context length is {context_limit} tokens. However, your prompt "
            f"contains {tokens} input tokens, which exceeds this limit even without any output "
            "tokens. Please reduce the length of the input prompt. "
            f"(parameter=input_tokens, value={tokens})",
            param="input_tokens",
        )


def _output_limit(body: Mapping[str, Any], *, tokens: int, context_limit: int) -> int:
    check_length(tokens, context_limit)
    left = context_limit - tokens
    asked = number(body, "max_completion_tokens")
    if asked is None:
        asked = number(body, "max_tokens")
    if asked is None:
        return left
    if asked < 1:
        raise ApiError(f"max_tokens must be at least 1, got {asked}.", param="max_tokens")
    if asked > left:
        raise ApiError(
            f"This model's maximum context length is {context_limit} tokens. However, you "
            f"asked for {asked} output tokens and your prompt contains {tokens} input tokens, for "
            f"a total of {asked + tokens} tokens. (parameter=max_tokens, value={asked})",
            param="max_tokens",
        )
    return asked
