"""OpenAI's Responses: the request as a chat, and its answer in the form of vLLM 0.32."""

from collections.abc import Mapping
from typing import Any

from routing.testbed.api_answers import AnswerStyle
from routing.testbed.api_events import named
from routing.testbed.api_requests import Prompt
from routing.testbed.errors import ApiError, number, text, type_error
from routing.testbed.http import LAST_CHUNK
from routing.testbed.sequence import Sequence
from routing.testbed.speech import Speech

_SAME = ("model", "stream", "cache_salt", "ignore_eos", "min_tokens", "kv_transfer_params",
         "bootstrap_host", "bootstrap_port", "bootstrap_room")  # fmt: skip


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request as one of the chat API. Raises ApiError."""
    if body.get("previous_response_id"):
        raise ApiError(
            "Stored responses are not offered.", status=404, kind="NotFoundError",
            param="previous_response_id",
        )  # fmt: skip
    instructions = text(body, "instructions")
    messages = [{"role": "system", "content": instructions}] if instructions else []
    given = body.get("input")
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    elif isinstance(given, list):
        messages += [_message(item, index) for index, item in enumerate(given)]
    else:
        raise type_error("string_type", "body.input", "Input should be a valid string", given)
    chat = {name: body[name] for name in _SAME if name in body} | {"messages": messages}
    if number(body, "max_output_tokens") is not None:
        chat["max_tokens"] = body["max_output_tokens"]
    tools = body.get("tools")
    if isinstance(tools, list) and tools:
        chat["tools"] = [_tool(tool) for tool in tools]
        chat["tool_choice"] = _choice(body.get("tool_choice"))
    return chat


def _message(item: object, index: int) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise type_error("dict_type", f"body.input.{index}", "Input should be an object", item)
    if item.get("type") == "function_call_output":
        return {"role": "tool", "content": str(item.get("output", ""))}
    if item.get("type") == "function_call":
        call = {"name": item.get("name"), "arguments": item.get("arguments")}
        return {"role": "assistant", "tool_calls": [call]}
    return {"role": item.get("role"), "content": item.get("content")}


def _tool(tool: object) -> Any:
    """Responses do not nest the function."""
    return {"type": "function", "function": tool} if isinstance(tool, dict) else tool


def _choice(choice: object) -> Any:
    if isinstance(choice, dict):
        return {"type": "function", "function": {"name": choice.get("name")}}
    return choice


class ResponsesAnswer:
    """Writes the answer of one sequence."""

    def __init__(
        self,
        prompt: Prompt,
        sequence: Sequence,
        style: AnswerStyle,
        *,
        created: int,
        body: Mapping[str, Any],
    ) -> None:
        self._prompt = prompt
        self._sequence = sequence
        self._style = style
        self._created = created
        self._body = body
        self._speech = Speech(prompt, sequence)
        self._text = ""
        self._number = 0

    def document(self, transfer: Mapping[str, Any] | None) -> dict[str, Any]:
        """The whole answer."""
        self._text += self._speech.news()[0]
        return self._response([self._item()]) | {"kv_transfer_params": transfer}

    def token_chunk(self, _: Sequence) -> bytes:
        """The stream's bytes for the token that came last."""
        opening = b"" if self._number else self._opening()
        news = self._speech.news()[0]
        self._text += news
        data = opening + self._event(f"{self._kind}.delta", delta=news, **self._place)
        return data if self._sequence.finish_reason is None else data + self._closing()

    @property
    def _kind(self) -> str:
        is_call = self._speech.call is not None
        return "response.function_call_arguments" if is_call else "response.output_text"

    @property
    def _place(self) -> dict[str, Any]:
        if self._speech.call is not None:
            return {"item_id": self._item_id, "output_index": 0}
        return {
            "item_id": self._item_id,
            "output_index": 0,
            "content_index": 0,
            "logprobs": [],
        }

    @property
    def _item_id(self) -> str:
        return f"{'fc' if self._speech.call else 'msg'}_{self._sequence.prompt_key:016x}"

    def _opening(self) -> bytes:
        empty = self._response([])
        data = self._event("response.created", response=empty)
        data += self._event("response.in_progress", response=empty)
        item = self._item() | {"status": "in_progress"}
        if self._speech.call is None:
            item["content"] = []
        data += self._event("response.output_item.added", output_index=0, item=item)
        if self._speech.call is not None:
            return data
        return data + self._event("response.content_part.added", part=_part(""), **self._spot())

    def _closing(self) -> bytes:
        call, item = self._speech.call, self._item()
        if call is not None:
            data = self._event(
                f"{self._kind}.done", name=call.name, arguments=self._text, **self._place
            )
        else:
            data = self._event(f"{self._kind}.done", text=self._text, **self._place)
            part = _part(self._text)
            data += self._event("response.content_part.done", part=part, **self._spot())
        data += self._event("response.output_item.done", output_index=0, item=item)
        done = self._response([item])
        kind = "response.completed" if done["status"] == "completed" else "response.incomplete"
        return data + self._event(kind, response=done) + LAST_CHUNK

    def _spot(self) -> dict[str, Any]:
        return {"item_id": self._item_id, "output_index": 0, "content_index": 0}

    def _event(self, kind: str, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._number} | fields
        self._number += 1
        return named(event)

    def _item(self) -> dict[str, Any]:
        call = self._speech.call
        if call is None:
            return {
                "id": self._item_id,
                "content": [_part(self._text)],
                "role": "assistant",
                "status": "completed",
                "type": "message",
                "phase": None,
            }
        return {
            "id": self._item_id,
            "call_id": f"call_{self._sequence.prompt_key:016x}",
            "name": call.name,
            "arguments": self._text,
            "status": "completed",
            "type": "function_call",
        }

    def _response(self, output: list[dict[str, Any]]) -> dict[str, Any]:
        sequence, body = self._sequence, self._body
        reason = sequence.finish_reason
        status = {None: "in_progress", "length": "incomplete"}.get(reason, "completed")
        why = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": f"resp_{sequence.id.rpartition('-')[2]}",
            "created_at": self._created,
            "incomplete_details": why,
            "instructions": body.get("instructions"),
            "metadata": body.get("metadata"),
            "model": self._style.model,
            "object": "response",
            "output": output,
            "parallel_tool_calls": True,
            "temperature": body.get("temperature", 1.0),
            "tool_choice": body.get("tool_choice") or ("auto" if body.get("tools") else "none"),
            "tools": body.get("tools") or [],
            "top_p": body.get("top_p", 1.0),
            "background": False,
            "max_output_tokens": self._prompt.max_tokens,
            "max_tool_calls": None,
            "previous_response_id": None,
            "prompt": None,
            "reasoning": None,
            "service_tier": "auto",
            "status": status,
            "text": None,
            "top_logprobs": None,
            "truncation": "disabled",
            "usage": None if reason is None else self._usage(),
            "user": body.get("user"),
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "input_messages": None,
            "output_messages": None,
        }

    def _usage(self) -> dict[str, Any]:
        sequence = self._sequence
        return {
            "input_tokens": sequence.prompt_tokens,
            "input_tokens_details": {
                "cached_tokens": sequence.cached if self._style.details else 0,
                "cache_write_tokens": 0,
                "input_tokens_per_turn": [],
                "cached_tokens_per_turn": [],
            },
            "output_tokens": sequence.output,
            "output_tokens_details": {
                "reasoning_tokens": 0,
                "tool_output_tokens": 0,
                "output_tokens_per_turn": [],
                "tool_output_tokens_per_turn": [],
            },
            "total_tokens": sequence.prompt_tokens + sequence.output,
        }


def _part(words: str) -> dict[str, Any]:
    return {"annotations": [], "text": words, "type": "output_text", "logprobs": None}
