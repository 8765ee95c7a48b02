"""Anthropic's messages: the request as a chat, and its answer in the form of vLLM 0.32."""

from collections.abc import Mapping
from typing import Any

import orjson

from routing.testbed.api_answers import AnswerStyle
from routing.testbed.api_events import named
from routing.testbed.api_requests import Prompt
from routing.testbed.errors import ApiError, number, type_error
from routing.testbed.http import LAST_CHUNK
from routing.testbed.sequence import Sequence
from routing.testbed.speech import Speech

_SAME = ("model", "stream", "max_tokens", "cache_salt", "ignore_eos", "min_tokens")
_CHOICES = {"any": "required", "auto": "auto", "none": "none"}


def as_chat(body: Mapping[str, Any], *, counts_only: bool = False) -> dict[str, Any]:
    """The request as one of the chat API. Raises ApiError."""
    if not counts_only and number(body, "max_tokens") is None:
        raise ApiError("max_tokens is required.", param="max_tokens")
    given = body.get("messages")
    if not isinstance(given, list):
        raise type_error("list_type", "body.messages", "Input should be a valid list", given)
    system = body.get("system")
    messages = [{"role": "system", "content": system}] if system else []
    for message in given:
        messages += _turns(message) if isinstance(message, dict) else [message]
    chat = {name: body[name] for name in _SAME if name in body} | {"messages": messages}
    chat["stop"] = body.get("stop_sequences")
    tools = body.get("tools")
    if isinstance(tools, list) and tools:
        chat["tools"] = [_tool(tool) for tool in tools]
        chat["tool_choice"] = _choice(body.get("tool_choice"))
    return chat


def _turns(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message; results of tools are messages of their own, as chat has them."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    results = [part for part in parts if isinstance(part, dict) and "tool_use_id" in part]
    calls = [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]
    if results:
        return [
            {"role": "tool", "content": orjson.dumps(part.get("content")).decode()}
            for part in results
        ]
    if calls:
        named_calls = [{"name": one.get("name"), "arguments": one.get("input")} for one in calls]
        return [{"role": "assistant", "tool_calls": named_calls}]
    return [message]


def _tool(tool: object) -> Any:
    if not isinstance(tool, dict):
        return tool
    function = {name: tool[name] for name in ("name", "description") if name in tool}
    return {"type": "function", "function": function | {"parameters": tool.get("input_schema")}}


def _choice(choice: object) -> Any:
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return _CHOICES.get(str(choice.get("type")), choice.get("type"))


class MessagesAnswer:
    """Writes the answer of one sequence."""

    def __init__(self, prompt: Prompt, sequence: Sequence, style: AnswerStyle) -> None:
        self._sequence = sequence
        self._model = style.model
        self._speech = Speech(prompt, sequence)
        self._has_begun = False

    def document(self, _: Mapping[str, Any] | None) -> dict[str, Any]:
        """The whole answer."""
        message = self._message([self._block(self._speech.news()[0])])
        message["stop_reason"] = self._stop_reason()
        if self._speech.stop_reason is not None:
            message["stop_sequence"] = self._speech.stop_reason
        return message | {"usage": self._usage()}

    def token_chunk(self, _: Sequence) -> bytes:
        """The stream's bytes for the token that came last."""
        opening = b"" if self._has_begun else self._opening()
        self._has_begun = True
        news = self._speech.news()[0]
        delta = {"type": "text_delta", "text": news}
        if self._speech.call is not None:
            delta = {"type": "input_json_delta", "partial_json": news}
        data = opening + named({"type": "content_block_delta", "index": 0, "delta": delta})
        return data if self._sequence.finish_reason is None else data + self._closing()

    def _opening(self) -> bytes:
        usage = {"input_tokens": self._sequence.prompt_tokens, "output_tokens": 0}
        message = self._message([]) | {"stop_reason": None, "stop_sequence": None, "usage": usage}
        block = self._block("") | ({"input": {}} if self._speech.call else {})
        return named({"type": "message_start", "message": message}) + named(
            {"type": "content_block_start", "index": 0, "content_block": block}
        )

    def _closing(self) -> bytes:
        delta = {"stop_reason": self._stop_reason(), "stop_sequence": self._speech.stop_reason}
        return (
            named({"type": "content_block_stop", "index": 0})
            + named({"type": "message_delta", "delta": delta, "usage": self._usage()})
            + named({"type": "message_stop"})
            + LAST_CHUNK
        )

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._sequence.id,
            "type": "message",
            "role": "assistant",
            "content": content,
            "model": self._model,
        }

    def _block(self, text: str) -> dict[str, Any]:
        call = self._speech.call
        if call is None:
            return {"type": "text", "text": text}
        name = f"toolu_{self._sequence.prompt_key:016x}"
        return {"type": "tool_use", "id": name, "name": call.name, "input": _read(text)}

    def _stop_reason(self) -> str:
        if self._speech.stop_reason is not None:
            return "stop_sequence"
        words = {"length": "max_tokens", "tool_calls": "tool_use"}
        return words.get(self._speech.finish_reason or "", "end_turn")

    def _usage(self) -> dict[str, Any]:
        sequence = self._sequence
        return {"input_tokens": sequence.prompt_tokens, "output_tokens": sequence.output}


def _read(arguments: str) -> Any:
    """Arguments that were cut by the limit of the output are no JSON: then there are none."""
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {}
