"""Bodies of completion requests: read, checked, turned into sequences; errors in vLLM's form."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from routing.testbed import tokens as tk
from routing.testbed.sequence import RemoteKv, Sequence


class ApiError(Exception):
    """A request was refused; `body()` is what vLLM's server would answer."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = "BadRequestError", param: str | None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param

    def body(self) -> dict[str, Any]:
        """The error document."""
        return {
            "error": {
                "message": str(self),
                "type": self.kind,
                "param": self.param,
                "code": self.status,
            }
        }


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

    def sequence(self, name: str, *, block_size: int, now: float) -> Sequence:
        """The prompt as the engine model takes it. The tokens are handed over, not copied."""
        root = tk.root_key(self.salt)
        return Sequence(
            id=name,
            tokens=self.tokens,
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
        raise _type_error("json_invalid", "body", f"JSON decode error: {error}", "{}") from error
    if not isinstance(value, dict):
        raise _type_error("model_attributes_type", "body", "Input should be a valid dictionary", "")
    return value


def check_model(body: Mapping[str, Any], served: str) -> None:
    """Raise ApiError when the request names another model."""
    asked = body.get("model", served)
    if asked != served:
        raise ApiError(
            f"The model `{asked}` does not exist. Valid aliases: {served}.",
            status=404,
            kind="NotFoundError",
            param="model",
        )


def parse_prompt(body: Mapping[str, Any], *, chat: bool, context_limit: int) -> Prompt:
    """Read a completion or chat request. Raises ApiError naming the field that is wrong."""
    tokens = chat_tokens(body) if chat else _completion_tokens(body)
    _refuse_many(body)
    options = _object(body, "stream_options") or {}
    stream = _flag(body, "stream")
    return Prompt(
        chat=chat,
        tokens=tokens,
        salt=_text(body, "cache_salt"),
        max_tokens=_output_limit(body, tokens=len(tokens), context_limit=context_limit),
        min_tokens=_number(body, "min_tokens") or 0,
        ignore_eos=_flag(body, "ignore_eos"),
        stream=stream,
        include_usage=stream and bool(options.get("include_usage")),
        continuous_usage=stream and bool(options.get("continuous_usage_stats")),
        return_token_ids=_flag(body, "return_token_ids"),
        transfer=_object(body, "kv_transfer_params"),
    )


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
        raise _type_error("list_type", "body.messages", "Input should be a valid list", messages)
    if not messages:
        raise ApiError("messages is empty; at least one message is needed.", param="messages")
    turns = [_turn(message, index) for index, message in enumerate(messages)]
    tools = body.get("tools")
    if tools:
        turns.insert(0, ("tools", orjson.dumps(tools).decode()))
    return tk.tokenize(tk.chat_segments(turns))


def _turn(message: object, index: int) -> tuple[str, str]:
    where = f"body.messages.{index}"
    if not isinstance(message, dict):
        raise _type_error("dict_type", where, "Input should be a valid dictionary", message)
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str):
        raise _type_error("missing", f"{where}.role", "Field required", message)
    if content is None:
        content = orjson.dumps(message["tool_calls"]).decode() if "tool_calls" in message else ""
    if isinstance(content, list):
        content = "".join(
            str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content
        )
    if not isinstance(content, str):
        raise _type_error("string_type", f"{where}.content", "Input should be a string", content)
    return role, content


def _completion_tokens(body: Mapping[str, Any]) -> "array[int]":
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
            raise _type_error("int_type", "body.prompt", str(error), prompt[0]) from error
    raise _type_error("string_type", "body.prompt", "Input should be a valid string", prompt)


def _refuse_many(body: Mapping[str, Any]) -> None:
    if (_number(body, "n") or 1) != 1:
        raise ApiError("The simulated engine answers with one choice; n must be 1.", param="n")


def _output_limit(body: Mapping[str, Any], *, tokens: int, context_limit: int) -> int:
    if tokens >= context_limit:
        raise ApiError(
            f"This model's maximum context length is {context_limit} tokens. However, your prompt "
            f"contains {tokens} input tokens, which exceeds this limit even without any output "
            "tokens. Please reduce the length of the input prompt. "
            f"(parameter=input_tokens, value={tokens})",
            param="input_tokens",
        )
    left = context_limit - tokens
    asked = _number(body, "max_completion_tokens")
    if asked is None:
        asked = _number(body, "max_tokens")
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


def _number(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    # In Python a truth value is a number as well; in JSON it is not.
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _type_error("int_type", f"body.{name}", "Input should be a valid integer", value)


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _type_error("bool_type", f"body.{name}", "Input should be a valid boolean", value)


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _type_error("string_type", f"body.{name}", "Input should be a valid string", value)


def _object(body: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise _type_error("dict_type", f"body.{name}", "Input should be a valid dictionary", value)


def _type_error(kind: str, where: str, message: str, value: object) -> ApiError:
    shown = repr(value)[:200]
    text = (
        f"1 validation error:\n  {{'type': '{kind}', 'loc': '{where}', 'msg': '{message}', "
        f"'input': {shown}}}"
    )
    return ApiError(text, kind="Bad Request", param=where)
